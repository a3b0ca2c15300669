// Float32 lanes in the compiler's own vector type, and bfloat16 in and out of them. No intrinsics: the compiler maps
// this to whatever the processor has, and the order of all sums is the one that is written here. What is summed over its
// lanes has eight; what goes lane by lane has as many as a register, which changes no bit.
#pragma once

#include <cstdint>
#include <cstring>

namespace vectors {

template <int64_t N>
struct Vector {
  typedef float f __attribute__((vector_size(4 * N)));
  typedef int32_t i __attribute__((vector_size(4 * N)));
  typedef uint32_t u __attribute__((vector_size(4 * N)));
  typedef uint16_t h __attribute__((vector_size(2 * N)));
};
template <class F>
using Like = Vector<sizeof(F) / 4>;

constexpr int64_t LANES = 8;
#if defined(__AVX512F__)
constexpr int64_t WIDE = 16;
#else
constexpr int64_t WIDE = 8;
#endif
typedef Vector<LANES>::f f8;
typedef Vector<LANES>::i i8;
typedef Vector<LANES>::u u8;
typedef Vector<WIDE>::f fw;
typedef Vector<WIDE>::i iw;

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
template <class F = f8>
inline F load(const float* p) {
  F v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class F = f8>
inline F load(const bf16* p) {
  typename Like<F>::h v;
  std::memcpy(&v, p, sizeof v);
  return cast<F>(__builtin_convertvector(v, typename Like<F>::u) << 16);
}
template <class F>
inline void store(float* p, F v) {
  std::memcpy(p, &v, sizeof v);
}

// To the nearest, ties to even, as torch rounds.
inline void put(float* p, float x) { *p = x; }
inline void put(bf16* p, float x) {
  const uint32_t bits = cast<uint32_t>(x);
  p->bits = x != x ? 0x7FC0 : uint16_t((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}
template <class F>
inline void store(bf16* p, F v) {
  const auto bits = cast<typename Like<F>::u>(v);
  const auto near = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  const auto out = __builtin_convertvector(v != v ? near * 0 + 0x7FC0 : near, typename Like<F>::h);
  std::memcpy(p, &out, sizeof out);
}

inline float sum(f8 v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }

// x · y over `size` values
inline float dot(const float* x, const float* y, int64_t size) {
  f8 a = all(0), b = all(0), c = all(0), d = all(0);
  int64_t i = 0;
  for (; i + 4 * LANES <= size; i += 4 * LANES) {
    a += load(x + i) * load(y + i);
    b += load(x + i + LANES) * load(y + i + LANES);
    c += load(x + i + 2 * LANES) * load(y + i + 2 * LANES);
    d += load(x + i + 3 * LANES) * load(y + i + 3 * LANES);
  }
  for (; i + LANES <= size; i += LANES) a += load(x + i) * load(y + i);
  float total = sum((a + b) + (c + d));
  for (; i < size; ++i) total += x[i] * y[i];
  return total;
}

// exp to about one unit in the last place: 2^n times a polynomial in the rest (the Cephes library's coefficients).
template <class F>
inline F exp(F x) {
  x = x < -87.0f ? F{} - 87.0f : x;
  x = x > 88.0f ? F{} + 88.0f : x;
  const F shift = F{} + 12582912.0f;  // 1.5 · 2^23: adding it rounds to an integer
  const F n = (x * 1.44269504088896341f + shift) - shift;
  const F r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  F p = F{} + 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return p * cast<F>((__builtin_convertvector(n, typename Like<F>::i) + 127) << 23);
}
template <class F>
inline F sigmoid(F x) {
  return 1.0f / (1.0f + exp(-x));
}
inline float sigmoid(float x) { return sigmoid(all(x))[0]; }

}  // namespace vectors
