// Eight float32 lanes in the compiler's own vector type, and bfloat16 in and out of them. No intrinsics: the compiler
// maps this to whatever the processor has, and the order of all sums is the one that is written here.
#pragma once

#include <cstdint>
#include <cstring>

namespace vectors {

typedef float f8 __attribute__((vector_size(32)));
typedef int32_t i8 __attribute__((vector_size(32)));
typedef uint32_t u8 __attribute__((vector_size(32)));
typedef uint16_t h8 __attribute__((vector_size(16)));

constexpr int64_t LANES = 8;

struct bf16 {
  uint16_t bits;
};

template <class To, class From>
inline To cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

inline float wide(float x) { return x; }
inline float wide(bf16 x) { return cast<float>(uint32_t(x.bits) << 16); }

inline f8 all(float x) { return f8{x, x, x, x, x, x, x, x}; }
inline f8 load(const float* p) {
  f8 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline f8 load(const bf16* p) {
  h8 v;
  std::memcpy(&v, p, sizeof v);
  return cast<f8>(__builtin_convertvector(v, u8) << 16);
}
inline void store(float* p, f8 v) { std::memcpy(p, &v, sizeof v); }

// To the nearest, ties to even, as torch rounds.
inline void put(float* p, float x) { *p = x; }
inline void put(bf16* p, float x) {
  const uint32_t bits = cast<uint32_t>(x);
  p->bits = x != x ? 0x7FC0 : uint16_t((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}
inline void store(bf16* p, f8 v) {
  const u8 bits = cast<u8>(v);
  const u8 near = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  const h8 out = __builtin_convertvector(v != v ? near * 0 + 0x7FC0 : near, h8);
  std::memcpy(p, &out, sizeof out);
}

inline float sum(f8 v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }

// exp to about one unit in the last place: 2^n times a polynomial in the rest (the Cephes library's coefficients).
inline f8 exp(f8 x) {
  x = x < -87.0f ? all(-87.0f) : x;
  x = x > 88.0f ? all(88.0f) : x;
  const f8 shift = all(12582912.0f);  // 1.5 · 2^23: adding it rounds to an integer
  const f8 n = (x * 1.44269504088896341f + shift) - shift;
  const f8 r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  f8 p = all(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return p * cast<f8>((__builtin_convertvector(n, i8) + 127) << 23);
}
inline f8 sigmoid(f8 x) { return 1.0f / (1.0f + exp(-x)); }
inline float sigmoid(float x) { return sigmoid(all(x))[0]; }

}  // namespace vectors
