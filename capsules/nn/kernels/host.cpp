// The blocks of capsules.nn for a CPU, as torch operators: what the Triton kernels beside this file are for a GPU.
//
// Values are float32 or bfloat16 and widened in registers; sums are float32. Work is divided among threads by outputs
// only, so no bit of a result depends on the number of threads. Products of float32 are left to torch's library. Chunks
// in bfloat16 use a processor's own products of it (AMX, else AVX512-BF16) where it has them.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cmath>
#include <vector>

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

#include "tiles.h"
#include "vectors.h"

using namespace vectors;
using torch::stable::Tensor;
using torch::headeronly::ScalarType;

namespace {

constexpr int64_t PAIR = 2 * LANES;  // bfloat16 values in one 32-byte read
constexpr int64_t TILE_O = 6, TILE_T = 2 * WIDE;  // twelve sums in registers; 4 times 24 runs at half the speed
constexpr int64_t BLOCK_O = 16 * TILE_O, BLOCK_I = 1024;  // what the second-level cache holds

template <class F>
void by_type(const Tensor& x, const F& f) {
  if (x.scalar_type() == ScalarType::BFloat16)
    f(bf16{});
  else if (x.scalar_type() == ScalarType::Float)
    f(0.0f);
  else
    STD_TORCH_CHECK(false, "float32 or bfloat16 is needed");
}

template <class T>
const T* in(const Tensor& x) { return static_cast<const T*>(x.const_data_ptr()); }
template <class T>
T* out(Tensor& x) { return static_cast<T*>(x.mutable_data_ptr()); }

// ---------------------------------------------------------------------------------------------------- linear, one row

// Pairs of bfloat16 are taken apart by a shift and a mask, so x comes as eight even and eight odd entries in turn.
void unzip(const float* x, float* pairs, int64_t size) {
  for (int64_t i = 0; i + PAIR <= size; i += PAIR)
    for (int64_t j = 0; j < LANES; ++j) {
      pairs[i + j] = x[i + 2 * j];
      pairs[i + LANES + j] = x[i + 2 * j + 1];
    }
}

float dot(const bf16* w, const float* x, const float* pairs, int64_t size) {
  f8 a = all(0), b = all(0), c = all(0), d = all(0);
  int64_t i = 0;
  const auto add = [&](int64_t at, f8& even, f8& odd) {
    __builtin_prefetch(w + at + 1024);  // the processor's own prefetching stops at the end of a page
    u8 both;
    std::memcpy(&both, w + at, sizeof both);
    even += cast<f8>(both << 16) * load(pairs + at);
    odd += cast<f8>(both & 0xFFFF0000u) * load(pairs + at + LANES);
  };
  for (; i + 2 * PAIR <= size; i += 2 * PAIR) {
    add(i, a, b);
    add(i + PAIR, c, d);
  }
  if (i + PAIR <= size) {
    add(i, a, b);
    i += PAIR;
  }
  float total = sum((a + b) + (c + d));
  for (; i < size; ++i) total += wide(w[i]) * x[i];
  return total;
}

float dot(const float* w, const float* x, const float*, int64_t size) { return vectors::dot(w, x, size); }

void one_row(const bf16* x, const bf16* w, bf16* y, int64_t inputs, int64_t outputs) {
  std::vector<float> flat(inputs), pairs(inputs);
  for (int64_t i = 0; i < inputs; ++i) flat[i] = wide(x[i]);
  unzip(flat.data(), pairs.data(), inputs);
  const int64_t grain = std::max<int64_t>(1, 65536 / inputs);
  torch::stable::parallel_for(0, outputs, grain, [&](int64_t from, int64_t to) {
    for (int64_t o = from; o < to; ++o) put(y + o, dot(w + o * inputs, flat.data(), pairs.data(), inputs));
  });
}

// ------------------------------------------------------------------------------------------------- linear, many rows

// TILE_O outputs times the first WIDTH vectors of TILE_T lanes: sums [TILE_O][stride] += w · x over `size` inputs, in
// ascending order. Entry (o, i) of w is w[o * w_o + i * w_i]; x [size][TILE_T] is one stream.
template <int WIDTH>
void tile(const float* w, int64_t w_o, int64_t w_i, const float* x, float* sums, int64_t size, int64_t stride) {
  fw held[TILE_O][WIDTH];
  for (int64_t o = 0; o < TILE_O; ++o)
    for (int64_t t = 0; t < WIDTH; ++t) held[o][t] = load<fw>(sums + o * stride + t * WIDE);
  for (int64_t i = 0; i < size; ++i) {
    fw lanes[WIDTH];
    for (int64_t t = 0; t < WIDTH; ++t) lanes[t] = load<fw>(x + i * TILE_T + t * WIDE);
    for (int64_t o = 0; o < TILE_O; ++o)
      for (int64_t t = 0; t < WIDTH; ++t) held[o][t] += w[o * w_o + i * w_i] * lanes[t];
  }
  for (int64_t o = 0; o < TILE_O; ++o)
    for (int64_t t = 0; t < WIDTH; ++t) store(sums + o * stride + t * WIDE, held[o][t]);
}

template <class W>
void widen(const W* w, float* to, int64_t size) {
  int64_t i = 0;
  for (; i + WIDE <= size; i += WIDE) store(to + i, load<fw>(w + i));
  for (; i < size; ++i) to[i] = wide(w[i]);
}

#if defined(__AVX512BF16__)
#if defined(TILES) && defined(__AMX_BF16__)
using tiles::TILE;
constexpr int64_t TILE_I = 32;  // bfloat16 in a row of a first factor
constexpr int64_t STEP_O = 2 * TILE, STEP_T = 2 * TILE, STEP_I = TILE_I;
struct Shaped : tiles::Shaped {
  Shaped() : tiles::Shaped(TILE_I * sizeof(bf16)) {}
};

// 16 rows of a first factor, `stride` bytes apart.
struct Rows {
  const bf16* at;
  int64_t stride;
};

// Those of w [outputs][inputs] from `first` and entry i on; in `edge`, with zeros, where they go beyond w.
inline Rows rows_of(const bf16* w, int64_t first, int64_t i, int64_t inputs, int64_t outputs, bf16* edge) {
  if (first + TILE <= outputs && i + TILE_I <= inputs) return {w + first * inputs + i, inputs * int64_t(sizeof *w)};
  std::memset(edge, 0, TILE * TILE_I * sizeof *edge);
  for (int64_t o = first; o < std::min(first + TILE, outputs); ++o)
    std::memcpy(edge + (o - first) * TILE_I, w + o * inputs + i, std::min(TILE_I, inputs - i) * sizeof *w);
  return {edge, TILE_I * sizeof *edge};
}

// STEP_O outputs from `first` on times STEP_T tokens from t on. Pairs of inputs of a token lie as the second factor of
// the instruction wants them, and w as it is does for the first.
inline void products(const uint32_t* turned, int64_t stride, const bf16* w, bf16* y, int64_t first, int64_t rows,
                     int64_t inputs, int64_t outputs, int64_t t) {
  const bool both = stride - t > TILE;  // else one tile of tokens
  bf16 edge[2][TILE * TILE_I];
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t i = 0; i < inputs; i += TILE_I) {
    const uint32_t* const x = turned + i / 2 * stride + t;
    const Rows low = rows_of(w, first, i, inputs, outputs, edge[0]);
    const Rows high = rows_of(w, first + TILE, i, inputs, outputs, edge[1]);
    _tile_loadd(4, low.at, low.stride);
    _tile_loadd(5, high.at, high.stride);
    _tile_loadd(6, x, stride * sizeof *x);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 5, 6);
    if (both) {
      _tile_loadd(7, x + TILE, stride * sizeof *x);
      _tile_dpbf16ps(2, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  alignas(64) float sums[2][2][TILE * TILE];  // [tokens][outputs][output][token]
  constexpr int64_t row = TILE * sizeof(float);
  _tile_stored(0, sums[0][0], row);
  _tile_stored(1, sums[0][1], row);
  _tile_stored(2, sums[1][0], row);
  _tile_stored(3, sums[1][1], row);
  const __m512i column = _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                                            _mm512_set1_epi32(TILE));
  for (int64_t k = 0; k < std::min(STEP_T, rows - t); ++k)
    for (int64_t half = 0; half < 2; ++half) {
      const float* const at = sums[k / TILE][half] + k % TILE;
      const int64_t o = first + half * TILE;
      bf16* const to = y + (t + k) * outputs + o;
      if (o + TILE <= outputs)
        store(to, cast<fw>(_mm512_i32gather_ps(column, at, sizeof(float))));
      else
        for (int64_t j = 0; o + j < outputs; ++j) put(to + j, at[j * TILE]);
    }
}
#else
constexpr int64_t WIDE_O = 8;  // outputs whose sums are held at once

// WIDE_O rows of w times WIDTH · WIDE tokens. A pair of neighbouring weights meets the same two inputs of every token;
// x [pairs][stride] has these as 32 bits.
template <int WIDTH>
void pair_tile(const bf16* const* w, const uint32_t* x, int64_t stride, int64_t inputs, float (*sums)[WIDTH * WIDE]) {
  __m512 held[WIDE_O][WIDTH];
  for (int o = 0; o < WIDE_O; ++o)
    for (int t = 0; t < WIDTH; ++t) held[o][t] = _mm512_setzero_ps();
  const auto add = [&](int64_t pair, const auto& weight) {
    __m512bh lanes[WIDTH];
    for (int t = 0; t < WIDTH; ++t) lanes[t] = (__m512bh)_mm512_loadu_si512(x + pair * stride + t * WIDE);
    for (int o = 0; o < WIDE_O; ++o) {
      const __m512bh both = (__m512bh)_mm512_set1_epi32(weight(o));
      for (int t = 0; t < WIDTH; ++t) held[o][t] = _mm512_dpbf16_ps(held[o][t], both, lanes[t]);
    }
  };
  for (int64_t i = 0; i + 2 <= inputs; i += 2)
    add(i / 2, [&](int o) {
      int32_t both;
      std::memcpy(&both, w[o] + i, sizeof both);
      return both;
    });
  if (inputs % 2) add(inputs / 2, [&](int o) { return int32_t(w[o][inputs - 1].bits); });
  for (int o = 0; o < WIDE_O; ++o)
    for (int t = 0; t < WIDTH; ++t) _mm512_storeu_ps(sums[o] + t * WIDE, held[o][t]);
}

template <int WIDTH>
void pair_tiles(const uint32_t* turned, int64_t stride, const bf16* w, bf16* y, int64_t first, int64_t rows,
                int64_t inputs, int64_t outputs, int64_t t) {
  const bf16* each[WIDE_O];
  for (int64_t o = 0; o < WIDE_O; ++o) each[o] = w + std::min(first + o, outputs - 1) * inputs;
  float sums[WIDE_O][WIDTH * WIDE];
  pair_tile<WIDTH>(each, turned + t, stride, inputs, sums);
  for (int64_t k = 0; k < std::min(WIDTH * WIDE, rows - t); ++k)
    for (int64_t o = 0; o < std::min(WIDE_O, outputs - first); ++o) put(y + (t + k) * outputs + first + o, sums[o][k]);
}

constexpr int64_t STEP_O = WIDE_O, STEP_T = 2 * WIDE, STEP_I = 2;
struct Shaped {};

inline void products(const uint32_t* turned, int64_t stride, const bf16* w, bf16* y, int64_t first, int64_t rows,
                     int64_t inputs, int64_t outputs, int64_t t) {
  (stride - t > WIDE ? pair_tiles<2> : pair_tiles<1>)(turned, stride, w, y, first, rows, inputs, outputs, t);
}
#endif

// Tokens lie side by side in the lanes; every output sums pairs of inputs in ascending order, whatever the number of
// rows. The instructions take magnitudes below 1e-38 for zeros.
void many_rows(const bf16* x, const bf16* w, bf16* y, int64_t rows, int64_t inputs, int64_t outputs) {
  const int64_t stride = (rows + WIDE - 1) / WIDE * WIDE, pairs = (inputs + STEP_I - 1) / STEP_I * STEP_I / 2;
  thread_local std::vector<uint32_t> kept;  // fresh pages at every call would cost more than what is written to them
  kept.resize(std::max<size_t>(kept.size(), pairs * stride));
  uint32_t* const turned = kept.data();
  torch::stable::parallel_for(0, pairs, 64, [&](int64_t from, int64_t to) {
    for (int64_t p = from; p < to; ++p)
      for (int64_t t = 0; t < stride; ++t) {
        const bf16* const at = x + t * inputs + 2 * p;
        const uint32_t low = t < rows && 2 * p < inputs ? at[0].bits : 0;
        const uint32_t high = t < rows && 2 * p + 1 < inputs ? at[1].bits : 0;
        turned[p * stride + t] = low | high << 16;
      }
  });
  torch::stable::parallel_for(0, (outputs + STEP_O - 1) / STEP_O, 64 / STEP_O, [&](int64_t from, int64_t to) {
    [[maybe_unused]] const Shaped shaped;
    for (int64_t o = from * STEP_O; o < to * STEP_O; o += STEP_O)
      for (int64_t t = 0; t < stride; t += STEP_T) products(turned, stride, w, y, o, rows, inputs, outputs, t);
  });
}
#else
// Tokens lie side by side in the lanes; every output sums its inputs in ascending order, whatever the number of rows.
void many_rows(const bf16* x, const bf16* w, bf16* y, int64_t rows, int64_t inputs, int64_t outputs) {
  const int64_t stride = (rows + TILE_T - 1) / TILE_T * TILE_T;
  thread_local std::vector<float> kept;  // fresh pages at every call would cost more than what is written to them
  kept.resize(std::max<size_t>(kept.size(), inputs * stride));
  float* const turned = kept.data();  // [stride / TILE_T][inputs][TILE_T], so that a tile is one stream
  torch::stable::parallel_for(0, inputs, 64, [&](int64_t from, int64_t to) {
    for (int64_t t = 0; t < stride; t += TILE_T)
      for (int64_t i = from; i < to; ++i)
        for (int64_t j = 0; j < TILE_T; ++j)
          turned[t * inputs + i * TILE_T + j] = t + j < rows ? wide(x[(t + j) * inputs + i]) : 0.0f;
  });
  const int64_t blocks = (outputs + BLOCK_O - 1) / BLOCK_O;
  torch::stable::parallel_for(0, blocks, 1, [&](int64_t from, int64_t to) {
    const int64_t step = std::min(BLOCK_I, inputs) + 16;  // rows a power of two apart would share cache sets
    thread_local std::vector<float> sums, weights;
    sums.resize(BLOCK_O * stride);
    weights.resize(TILE_O * step);
    for (int64_t block = from; block < to; ++block) {
      const int64_t first = block * BLOCK_O, count = std::min(BLOCK_O, outputs - first);
      std::fill(sums.begin(), sums.end(), 0.0f);
      for (int64_t i = 0; i < inputs; i += BLOCK_I) {
        const int64_t size = std::min(BLOCK_I, inputs - i);
        for (int64_t o = 0; o < count; o += TILE_O) {
          for (int64_t k = 0; k < TILE_O; ++k)  // rows beyond the last repeat it; their sums are not used
            widen(w + (first + std::min(o + k, count - 1)) * inputs + i, &weights[k * step], size);
          for (int64_t t = 0; t < stride; t += TILE_T)
            (rows - t > WIDE ? tile<2> : tile<1>)(weights.data(), step, 1, &turned[t * inputs + i * TILE_T],
                                                   &sums[o * stride + t], size, stride);
        }
      }
      for (int64_t t = 0; t < rows; ++t)
        for (int64_t o = 0; o < count; ++o) put(y + t * outputs + first + o, sums[o * stride + t]);
    }
  });
}
#endif

Tensor linear(const Tensor& x, const Tensor& weight) {
  const int64_t outputs = weight.size(0), inputs = weight.size(1), rows = x.numel() / inputs;
  std::vector<int64_t> shape(x.sizes().begin(), x.sizes().end());
  shape.back() = outputs;
  Tensor y = torch::stable::new_empty(x, shape);
  if (rows == 1)
    one_row(in<bf16>(x), in<bf16>(weight), out<bf16>(y), inputs, outputs);
  else
    many_rows(in<bf16>(x), in<bf16>(weight), out<bf16>(y), rows, inputs, outputs);
  return y;
}

// The same with sums that stay in float32, each row by itself: x [T, I], weight [O, I] -> [T, O] float32
Tensor scores(const Tensor& x, const Tensor& weight) {
  const int64_t outputs = weight.size(0), inputs = weight.size(1), rows = x.size(0);
  Tensor y = torch::stable::new_empty(x, {rows, outputs}, ScalarType::Float);
  float* const to = out<float>(y);
  std::vector<float> flat(rows * inputs), pairs(rows * inputs);
  for (int64_t i = 0; i < rows * inputs; ++i) flat[i] = wide(in<bf16>(x)[i]);
  for (int64_t t = 0; t < rows; ++t) unzip(&flat[t * inputs], &pairs[t * inputs], inputs);
  const int64_t grain = std::max<int64_t>(1, 65536 / (rows * inputs));
  torch::stable::parallel_for(0, outputs, grain, [&](int64_t from, int64_t until) {
    for (int64_t o = from; o < until; ++o)
      for (int64_t t = 0; t < rows; ++t)
        to[t * outputs + o] = dot(in<bf16>(weight) + o * inputs, &flat[t * inputs], &pairs[t * inputs], inputs);
  });
  return y;
}

// ------------------------------------------------------------------------------------------------------ row by row

template <class T>
void norm_row(const T* x, const float* weight, T* y, int64_t size, float eps) {
  f8 squares = all(0);
  int64_t i = 0;
  for (; i + LANES <= size; i += LANES) {
    const f8 v = load(x + i);
    squares += v * v;
  }
  float total = sum(squares);
  for (int64_t j = i; j < size; ++j) total += wide(x[j]) * wide(x[j]);
  const float scale = 1.0f / std::sqrt(total / float(size) + eps);
  for (i = 0; i + LANES <= size; i += LANES) store(y + i, load(x + i) * scale * load(weight + i));
  for (; i < size; ++i) put(y + i, wide(x[i]) * scale * weight[i]);
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  const int64_t size = weight.numel(), rows = x.numel() / size;
  Tensor y = torch::stable::empty_like(x);
  by_type(x, [&](auto kind) {
    using T = decltype(kind);
    torch::stable::parallel_for(0, rows, std::max<int64_t>(1, 32768 / size), [&](int64_t from, int64_t to) {
      for (int64_t r = from; r < to; ++r)
        norm_row(in<T>(x) + r * size, in<float>(weight), out<T>(y) + r * size, size, float(eps));
    });
  });
  return y;
}

// x [T, H, D] with D contiguous; cos, sin [T, R]
Tensor norm_rotate(const Tensor& x, const Tensor& weight, double eps, const Tensor& cos, const Tensor& sin) {
  const int64_t rows = x.size(0), heads = x.size(1), size = x.size(2), turned = cos.size(1), half = turned / 2;
  const int64_t row_stride = x.stride(0), head_stride = x.stride(1);
  Tensor y = torch::stable::new_empty(x, {rows, heads, size});
  by_type(x, [&](auto kind) {
    using T = decltype(kind);
    torch::stable::parallel_for(0, rows * heads, 128, [&](int64_t from, int64_t to) {
      for (int64_t r = from; r < to; ++r) {
        T* row = out<T>(y) + r * size;
        norm_row(in<T>(x) + r / heads * row_stride + r % heads * head_stride, in<float>(weight), row, size, float(eps));
        const float *c = in<float>(cos) + r / heads * turned, *s = in<float>(sin) + r / heads * turned;
        for (int64_t i = 0; i < half; ++i) {
          const float low = wide(row[i]), high = wide(row[i + half]);
          put(row + i, low * c[i] - high * s[i]);
          put(row + i + half, high * c[i + half] + low * s[i + half]);
        }
      }
    });
  });
  return y;
}

Tensor swiglu(const Tensor& both) {
  const int64_t size = both.size(both.dim() - 1) / 2, rows = both.numel() / (2 * size);
  std::vector<int64_t> shape(both.sizes().begin(), both.sizes().end());
  shape.back() = size;
  Tensor y = torch::stable::new_empty(both, shape);
  by_type(both, [&](auto kind) {
    using T = decltype(kind);
    torch::stable::parallel_for(0, rows, std::max<int64_t>(1, 16384 / size), [&](int64_t from, int64_t to) {
      for (int64_t r = from; r < to; ++r) {
        const T *gate = in<T>(both) + r * 2 * size, *up = gate + size;
        T* to_row = out<T>(y) + r * size;
        int64_t i = 0;
        for (; i + WIDE <= size; i += WIDE) {
          const fw g = load<fw>(gate + i);
          store(to_row + i, g * sigmoid(g));  // rounded once before the product, as the plain form does
          store(to_row + i, load<fw>(to_row + i) * load<fw>(up + i));
        }
        for (; i < size; ++i) {
          put(to_row + i, wide(gate[i]) * sigmoid(wide(gate[i])));
          put(to_row + i, wide(to_row[i]) * wide(up[i]));
        }
      }
    });
  });
  return y;
}

// ------------------------------------------------------------------------------------------- attention, one query row

// Scores become exp(score - the largest), in place; their sum, in ascending order.
float soften(std::vector<float>& scores) {
  const float peak = *std::max_element(scores.begin(), scores.end());
  const int64_t length = scores.size();
  int64_t s = 0;
  for (; s + WIDE <= length; s += WIDE) store(&scores[s], exp(load<fw>(&scores[s]) - peak));
  for (; s < length; ++s) scores[s] = exp(all(scores[s] - peak))[0];
  float total = 0;
  for (const float weight : scores) total += weight;
  return total;
}

// The rows of values [length][size], `stride` apart, each times its weight; their sum over `total`. From entry d on, as
// far as VECTORS at a time go; returns where that ends.
template <int VECTORS, class K, class T>
int64_t gather(const K* values, int64_t stride, const std::vector<float>& weights, float total, T* y, int64_t d,
               int64_t size) {
  for (; d + VECTORS * WIDE <= size; d += VECTORS * WIDE) {
    fw held[VECTORS]{};
    for (size_t s = 0; s < weights.size(); ++s)
      for (int64_t j = 0; j < VECTORS; ++j) held[j] += weights[s] * load<fw>(values + s * stride + d + j * WIDE);
    for (int64_t j = 0; j < VECTORS; ++j) store(y + d + j * WIDE, held[j] / total);
  }
  return d;
}

// q [1, H, D]; k, v [S, G, D]; only the keys 0 … position are read, so no result depends on S.
Tensor decode_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& position, double scale) {
  const int64_t heads = q.size(1), size = q.size(2), share = heads / k.size(1), length = in<int64_t>(position)[0] + 1;
  const int64_t key_row = k.stride(0), key_head = k.stride(1), value_row = v.stride(0), value_head = v.stride(1);
  Tensor y = torch::stable::empty_like(q);
  by_type(q, [&](auto kind) {
    using T = decltype(kind);
    by_type(k, [&](auto stored) {
      using K = decltype(stored);
      torch::stable::parallel_for(0, heads, std::max<int64_t>(1, 16384 / (length * size)), [&](int64_t from, int64_t to) {
        std::vector<float> query(size), pairs(size), scores(length);
        for (int64_t h = from; h < to; ++h) {
          for (int64_t d = 0; d < size; ++d) query[d] = wide(in<T>(q)[h * size + d]) * float(scale);
          unzip(query.data(), pairs.data(), size);
          const K* const keys = in<K>(k) + h / share * key_head;
          for (int64_t s = 0; s < length; ++s) scores[s] = dot(keys + s * key_row, query.data(), pairs.data(), size);
          const float total = soften(scores);
          const K* const values = in<K>(v) + h / share * value_head;
          T* const row = out<T>(y) + h * size;
          int64_t d = gather<8>(values, value_row, scores, total, row, 0, size);
          d = gather<1>(values, value_row, scores, total, row, d, size);
          for (; d < size; ++d) {
            float gathered = 0;
            for (int64_t s = 0; s < length; ++s) gathered += scores[s] * wide(values[s * value_row + d]);
            put(row + d, gathered / total);
          }
        }
      });
    });
  });
  return y;
}

// ----------------------------------------------------------------------------------------- attention, a chunk of rows

// q [T, H, D]; k, v [S, G, D]; row t reads the keys 0 … positions[t]. The rows and the heads
// that share a key lie side by side in lanes, so that a key is read once for all of them.
template <class T, class K>
void attend_lanes(const Tensor& q, const Tensor& k, const Tensor& v, const int64_t* positions, Tensor& y, float scale,
                  int64_t group, int64_t first) {
  const int64_t heads = q.size(1), size = q.size(2), share = heads / k.size(1);
  const int64_t used = std::min(TILE_T, q.size(0) * share - first);  // lane j is row (first + j) / share
  const auto multiply = used > WIDE ? tile<2> : tile<1>;
  const auto place = [&](int64_t j) {
    return ((first + j) / share * heads + group * share + (first + j) % share) * size;
  };
  const int64_t padded = (size + TILE_O - 1) / TILE_O * TILE_O, step = BLOCK_O;  // keys or values widened at a time
  std::vector<float> query(size * TILE_T), total(TILE_T), out_lanes(padded * TILE_T), block(step * padded);
  std::vector<int32_t> last(TILE_T, 0);
  for (int64_t j = 0; j < used; ++j) {
    last[j] = int32_t(positions[(first + j) / share]);
    for (int64_t d = 0; d < size; ++d) query[d * TILE_T + j] = wide(in<T>(q)[place(j) + d]) * scale;
  }
  const int64_t length = *std::max_element(last.begin(), last.end()) + 1;
  std::vector<float> scores((length + TILE_O) * TILE_T);
  const auto widened = [&](const Tensor& from, int64_t at) {
    const int64_t count = std::min(step, length - at);
    for (int64_t s = 0; s < count; ++s)
      widen(in<K>(from) + (at + s) * from.stride(0) + group * from.stride(1), &block[s * padded], size);
    return count;
  };
  for (int64_t at = 0; at < length; at += step) {
    const int64_t count = widened(k, at);  // a tile may run over into keys of an earlier block: those sums are not used
    for (int64_t s = 0; s < count; s += TILE_O)
      multiply(&block[s * padded], padded, 1, query.data(), &scores[(at + s) * TILE_T], size, TILE_T);
  }
  for (int64_t j = 0; j < TILE_T; j += WIDE) {
    iw ends;
    std::memcpy(&ends, &last[j], sizeof ends);
    const int64_t shown = *std::min_element(&last[j], &last[j] + WIDE);  // up to here no lane is masked
    fw peak = fw{} - INFINITY, sum{};
    for (int64_t s = 0; s < length; ++s) {
      fw score = load<fw>(&scores[s * TILE_T + j]);
      if (s > shown) score = ends >= int32_t(s) ? score : fw{} - INFINITY;
      peak = peak > score ? peak : score;
    }
    for (int64_t s = 0; s < length; ++s) {
      fw weight = exp(load<fw>(&scores[s * TILE_T + j]) - peak);
      if (s > shown) weight = ends >= int32_t(s) ? weight : fw{};
      store(&scores[s * TILE_T + j], weight);
      sum += weight;
    }
    store(&total[j], sum);
  }
  for (int64_t at = 0; at < length; at += step) {
    const int64_t count = widened(v, at);
    for (int64_t d = 0; d < size; d += TILE_O)
      multiply(&block[d], 1, padded, &scores[at * TILE_T], &out_lanes[d * TILE_T], count, TILE_T);
  }
  for (int64_t j = 0; j < used; ++j)
    for (int64_t d = 0; d < size; ++d) put(out<T>(y) + place(j) + d, out_lanes[d * TILE_T + j] / total[j]);
}

Tensor chunk_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& positions, double scale) {
  const int64_t groups = k.size(1), lanes = q.size(0) * q.size(1) / groups, tiles = (lanes + TILE_T - 1) / TILE_T;
  Tensor y = torch::stable::empty_like(q);
  by_type(q, [&](auto kind) {
    by_type(k, [&](auto stored) {
      torch::stable::parallel_for(0, groups * tiles, 1, [&](int64_t from, int64_t to) {
        for (int64_t n = from; n < to; ++n)
          attend_lanes<decltype(kind), decltype(stored)>(q, k, v, in<int64_t>(positions), y, float(scale), n / tiles,
                                                         n % tiles * TILE_T);
      });
    });
  });
  return y;
}

}  // namespace

STABLE_TORCH_LIBRARY(capsules_host, m) {
  m.def("linear(Tensor x, Tensor weight) -> Tensor");
  m.def("scores(Tensor x, Tensor weight) -> Tensor");
  m.def("rms_norm(Tensor x, Tensor weight, float eps) -> Tensor");
  m.def("norm_rotate(Tensor x, Tensor weight, float eps, Tensor cos, Tensor sin) -> Tensor");
  m.def("swiglu(Tensor both) -> Tensor");
  m.def("decode_attention(Tensor q, Tensor k, Tensor v, Tensor position, float scale) -> Tensor");
  m.def("chunk_attention(Tensor q, Tensor k, Tensor v, Tensor positions, float scale) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(capsules_host, CPU, m) {
  m.impl("linear", TORCH_BOX(&linear));
  m.impl("scores", TORCH_BOX(&scores));
  m.impl("rms_norm", TORCH_BOX(&rms_norm));
  m.impl("norm_rotate", TORCH_BOX(&norm_rotate));
  m.impl("swiglu", TORCH_BOX(&swiglu));
  m.impl("decode_attention", TORCH_BOX(&decode_attention));
  m.impl("chunk_attention", TORCH_BOX(&chunk_attention));
}
