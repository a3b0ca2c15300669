// Products with matrices of eight or four bits on a CPU, as a torch operator; capsules/nn/panels.py says how they lie.
//
// A row of the input is brought to eight bits, group by group. Within a group everything is integers and so exact, on
// any processor in any order; the groups are added in float32 in ascending order. So a row's result does not depend on
// its neighbours, nor on whether it has any, nor on the number of threads.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cmath>
#include <vector>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "tiles.h"
#include "vectors.h"

using namespace vectors;
using torch::stable::Tensor;
using torch::headeronly::ScalarType;

namespace {

constexpr int64_t PANEL = 16, TILE = 8;

typedef uint8_t bytes __attribute__((vector_size(64)));  // a step: sixteen rows, four inputs of each
typedef int32_t sums __attribute__((vector_size(64)));
typedef float floats __attribute__((vector_size(64)));
typedef uint32_t words __attribute__((vector_size(64)));
typedef uint16_t halves __attribute__((vector_size(32)));

// A matrix of so many bits with a scale for so many inputs, and a shift if it has one.
template <int B, int SIZE, bool SHIFT>
struct Form {
  static constexpr int BITS = B;
  static constexpr bool SHIFTED = SHIFT;
  static constexpr int64_t GROUP = SIZE, BYTES = PANEL * GROUP * BITS / 8, STEPS = GROUP / 4;
  static constexpr int64_t SCALES = PANEL * (SHIFTED ? 2 : 1);
  static constexpr int32_t ZERO = BITS == 8 ? 128 : 8;
};
using Eight = Form<8, 64, false>;

// Rows of the input: values [rows][columns], and per row and group the scale and what ZERO adds to a sum, negated.
struct Inputs {
  int64_t columns, groups;
  std::vector<int8_t> values;
  std::vector<float> scale;
  std::vector<int32_t> zero;
};

inline bytes load64(const uint8_t* p) {
  bytes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline floats scales(const bf16* p) {
  halves v;
  std::memcpy(&v, p, sizeof v);
  return cast<floats>(__builtin_convertvector(v, words) << 16);
}

// total[n] += w[4 n] · x[0] + … + w[4 n + 3] · x[3], w unsigned, x signed
#if defined(__AVX512VNNI__)
constexpr const char* INSTRUCTIONS = "avx512-vnni";
inline void add(sums& total, const bytes& w, const int8_t* x) {
  int32_t four;
  std::memcpy(&four, x, 4);
  total = cast<sums>(_mm512_dpbusd_epi32(cast<__m512i>(total), cast<__m512i>(w), _mm512_set1_epi32(four)));
}
#elif defined(__AVXVNNI__)
constexpr const char* INSTRUCTIONS = "avx-vnni";
inline void add(sums& total, const bytes& w, const int8_t* x) {
  int32_t four;
  std::memcpy(&four, x, 4);
  __m256i t[2], u[2];
  std::memcpy(t, &total, sizeof t);
  std::memcpy(u, &w, sizeof u);
  for (int h = 0; h < 2; ++h) t[h] = _mm256_dpbusd_avx_epi32(t[h], u[h], _mm256_set1_epi32(four));
  std::memcpy(&total, t, sizeof t);
}
#elif defined(__AVX2__)
constexpr const char* INSTRUCTIONS = "avx2";
inline void add(sums& total, const bytes& w, const int8_t* x) {
  int32_t four;
  std::memcpy(&four, x, 4);
  __m256i t[2], u[2];
  std::memcpy(t, &total, sizeof t);
  std::memcpy(u, &w, sizeof u);
  const __m256i all = _mm256_set1_epi32(four), odd = _mm256_srai_epi16(all, 8);
  const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(all, 8), 8), low = _mm256_set1_epi16(255);
  for (int h = 0; h < 2; ++h) {  // in sixteen bits: products of bytes in pairs would not fit into them
    const __m256i a = _mm256_madd_epi16(_mm256_and_si256(u[h], low), even);
    const __m256i b = _mm256_madd_epi16(_mm256_srli_epi16(u[h], 8), odd);
    t[h] = _mm256_add_epi32(t[h], _mm256_add_epi32(a, b));
  }
  std::memcpy(&total, t, sizeof t);
}
#else
constexpr const char* INSTRUCTIONS = "plain";
inline void add(sums& total, const bytes& w, const int8_t* x) {
  for (int n = 0; n < PANEL; ++n)
    total[n] += w[4 * n] * x[0] + w[4 * n + 1] * x[1] + w[4 * n + 2] * x[2] + w[4 * n + 3] * x[3];
}
#endif

// ------------------------------------------------------------------------------------------------------------- inputs

// One row to eight bits: the largest magnitude of a group becomes 127.
template <class F, class T>
void take(const T* x, int64_t size, Inputs& to, int64_t row) {
  constexpr int64_t GROUP = F::GROUP;
  const f8 shift = all(12582912.0f);  // 1.5 · 2^23: adding it rounds to an integer, ties to even
  for (int64_t g = 0; g < to.groups; ++g) {
    alignas(32) float wide_x[GROUP];
    const int64_t count = std::min(GROUP, size - g * GROUP);
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) store(wide_x + i, load(x + g * GROUP + i));
    for (; i < count; ++i) wide_x[i] = wide(x[g * GROUP + i]);
    std::fill(wide_x + count, wide_x + GROUP, 0.0f);
    f8 peaks = all(0);
    for (i = 0; i < GROUP; i += LANES) {
      const f8 v = load(wide_x + i), size_of = v < 0.0f ? -v : v;
      peaks = peaks > size_of ? peaks : size_of;
    }
    float peak = 0;
    for (int64_t n = 0; n < LANES; ++n) peak = std::max(peak, peaks[n]);
    const f8 factor = all(peak > 0 ? 127.0f / peak : 0.0f);
    i8 total = i8{};
    int8_t* const values = to.values.data() + row * to.columns + g * GROUP;
    for (i = 0; i < GROUP; i += LANES) {
      const i8 whole = __builtin_convertvector((load(wide_x + i) * factor + shift) - shift, i8);
      total += whole;
      typedef int8_t q8 __attribute__((vector_size(8)));
      const q8 narrow = __builtin_convertvector(whole, q8);
      std::memcpy(values + i, &narrow, sizeof narrow);
    }
    int32_t sum = 0;
    for (int64_t n = 0; n < LANES; ++n) sum += total[n];
    to.scale[row * to.groups + g] = peak / 127.0f;
    to.zero[row * to.groups + g] = -F::ZERO * sum;
  }
}

// ----------------------------------------------------------------------------------------------------------- products

// One panel times T rows of the input from `row` on: out [T] of sixteen sums.
template <class F, int T>
inline void tile(const uint8_t* w, const bf16* scale, const Inputs& x, int64_t row, floats* out) {
  const int8_t* values[T];
  floats total[T];
  for (int t = 0; t < T; ++t) {
    values[t] = x.values.data() + (row + t) * x.columns;
    total[t] = floats{};
  }
  const float* const factor = x.scale.data() + row * x.groups;
  const int32_t* const zero = x.zero.data() + row * x.groups;
  const int64_t ahead = T == 1 ? 4096 : x.groups * F::BYTES;
  for (int64_t g = 0; g < x.groups; ++g) {
    sums whole[T];
    for (int t = 0; t < T; ++t) whole[t] = sums{} + zero[t * x.groups + g];
    for (int64_t s = 0; s < F::STEPS; s += F::BITS == 8 ? 1 : 2) {
      __builtin_prefetch(w + ahead, 0, T == 1 ? 3 : 2);  // the processor's own prefetching stops at the end of a page
      const bytes both = load64(w);
      w += sizeof both;
      const int64_t at = g * F::GROUP + s * 4;
      if constexpr (F::BITS == 8) {
        for (int t = 0; t < T; ++t) add(whole[t], both, values[t] + at);
      } else {
        const bytes first = both & 15, second = both >> 4;
        for (int t = 0; t < T; ++t) add(whole[t], first, values[t] + at);
        for (int t = 0; t < T; ++t) add(whole[t], second, values[t] + at + 4);
      }
    }
    const floats each = scales(scale + g * F::SCALES);
    if constexpr (F::SHIFTED) {  // added to each weight, so that it meets the sum of the inputs, which `zero` holds
      const floats shift = scales(scale + g * F::SCALES + PANEL) * (-1.0f / F::ZERO);
      for (int t = 0; t < T; ++t) {
        const floats of = __builtin_convertvector(whole[t], floats) + shift * static_cast<float>(zero[t * x.groups + g]);
        total[t] += of * (each * factor[t * x.groups + g]);
      }
    } else {
      for (int t = 0; t < T; ++t)
        total[t] += __builtin_convertvector(whole[t], floats) * (each * factor[t * x.groups + g]);
    }
  }
  for (int t = 0; t < T; ++t) out[t] = total[t];
}

constexpr int64_t CHUNK = 16;  // rows of the input that are padded to

// One panel times `rows` rows of the input: out [rows] of sixteen sums.
template <class F>
void chunk(const uint8_t* w, const bf16* scale, const Inputs& x, int64_t rows, floats* out) {
  for (int64_t t = 0; t < rows; t += TILE) tile<F, TILE>(w, scale, x, t, out + t);
}

template <class F>
struct Shaped {};

#if defined(TILES) && defined(__AMX_INT8__)
// The same integers by matrix tiles: a group of eight bits lies as a second factor has to. Groups of 32 are half
// as long, and what is done for each of them takes as long as this saves.
template <>
void chunk<Eight>(const uint8_t* w, const bf16* scale, const Inputs& x, int64_t rows, floats* out) {
  using F = Eight;
  static_assert(CHUNK == tiles::TILE && PANEL == tiles::TILE);
  alignas(64) int32_t whole[2][CHUNK * PANEL];
  const int64_t panel = x.groups * F::BYTES;
  std::fill(out, out + rows, floats{});
  for (int64_t g = 0; g < x.groups; ++g, w += F::BYTES) {
    for (int64_t b = 0; b < F::BYTES; b += 64) __builtin_prefetch(w + panel + b, 0, 2);
    _tile_loadd(6, w, 64);
    const floats each = scales(scale + g * PANEL);
    const auto scaled = [&](int64_t t, const int32_t* found) {
      for (int64_t k = 0; k < std::min(CHUNK, rows - t); ++k) {
        sums of;
        std::memcpy(&of, found + k * PANEL, sizeof of);
        const int64_t at = (t + k) * x.groups + g;
        out[t + k] += __builtin_convertvector(of + x.zero[at], floats) * (each * x.scale[at]);
      }
    };
    for (int64_t t = 0; t < rows; t += 2 * CHUNK) {
      const int8_t* const values = x.values.data() + t * x.columns + g * F::GROUP;
      const bool both = rows - t > CHUNK;
      _tile_zero(0);
      _tile_loadd(4, values, x.columns);
      _tile_dpbsud(0, 4, 6);
      if (both) {
        _tile_zero(1);
        _tile_loadd(5, values + CHUNK * x.columns, x.columns);
        _tile_dpbsud(1, 5, 6);
      }
      _tile_stored(0, whole[0], 64);
      if (both) _tile_stored(1, whole[1], 64);
      scaled(t, whole[0]);
      if (both) scaled(t + CHUNK, whole[1]);
    }
  }
}

template <>
struct Shaped<Eight> : tiles::Shaped {
  Shaped() : tiles::Shaped(Eight::GROUP) {}
};
#endif

// The first `count` sums of a panel
template <class T>
inline void keep(floats made, T* y, int64_t count) {
  if (count == PANEL)
    store(y, made);
  else
    for (int64_t n = 0; n < count; ++n) put(y + n, made[n]);
}

template <class F, class T>
void multiply(const Tensor& x, const Tensor& weight, const Tensor& scale, Tensor& y, int64_t rows, int64_t size) {
  const int64_t panels = weight.size(0), groups = weight.size(1), outputs = y.size(y.dim() - 1);
  const int64_t padded = rows == 1 ? 1 : (rows + CHUNK - 1) / CHUNK * CHUNK;
  thread_local Inputs inputs;  // fresh pages at every call would cost more than what is written to them
  Inputs& in = inputs;
  in.columns = groups * F::GROUP;
  in.groups = groups;
  in.values.resize(std::max<size_t>(in.values.size(), padded * in.columns));
  in.scale.resize(std::max<size_t>(in.scale.size(), padded * groups));
  in.zero.resize(std::max<size_t>(in.zero.size(), padded * groups));
  const T* const from_x = static_cast<const T*>(x.const_data_ptr());
  torch::stable::parallel_for(0, rows, std::max<int64_t>(1, 16384 / size), [&](int64_t from, int64_t to) {
    for (int64_t t = from; t < to; ++t) take<F>(from_x + t * size, size, in, t);
  });
  T* const to_y = static_cast<T*>(y.mutable_data_ptr());
  const uint8_t* const w = static_cast<const uint8_t*>(weight.const_data_ptr());
  const bf16* const s = static_cast<const bf16*>(scale.const_data_ptr());
  const int64_t grain = std::max<int64_t>(1, 65536 / (PANEL * in.columns));
  torch::stable::parallel_for(0, panels, grain, [&](int64_t from, int64_t to) {
    thread_local std::vector<floats> kept;
    kept.resize(std::max<size_t>(kept.size(), padded));
    floats* const made = kept.data();
    const auto each_panel = [&](const auto& product) {
      for (int64_t p = from; p < to; ++p) {
        product(w + p * groups * F::BYTES, s + p * groups * F::SCALES);
        const int64_t first = p * PANEL, count = std::min(PANEL, outputs - first);
        for (int64_t t = 0; t < rows; ++t) keep(made[t], to_y + t * outputs + first, count);
      }
    };
    if (rows == 1) {
      each_panel([&](const uint8_t* panel, const bf16* scales) { tile<F, 1>(panel, scales, in, 0, made); });
    } else {
      [[maybe_unused]] const Shaped<F> shaped;
      each_panel([&](const uint8_t* panel, const bf16* scales) { chunk<F>(panel, scales, in, rows, made); });
    }
  });
}

// Do something with the form of a matrix, as its tensors show it.
template <class Some>
void in_form(const Tensor& values, const Tensor& scale, const Some& some) {
  const bool shifted = scale.size(2) == 2 * PANEL;
  const auto tried = [&](auto form) {
    using F = decltype(form);
    if (values.size(2) != F::BYTES || shifted != F::SHIFTED) return false;
    some(form);
    return true;
  };
  STD_TORCH_CHECK(tried(Eight{}) || tried(Form<4, 32, false>{}) || tried(Form<4, 32, true>{}) ||
                      tried(Form<8, 32, false>{}) || tried(Form<8, 32, true>{}),
                  "panels of eight or four bits are needed");
}

// x [..., I], contiguous; values and scale as PanelWeight has them -> [..., outputs] in x's type
Tensor linear(const Tensor& x, const Tensor& values, const Tensor& scale, int64_t outputs) {
  const int64_t size = x.size(x.dim() - 1), rows = x.numel() / size;
  std::vector<int64_t> shape(x.sizes().begin(), x.sizes().end());
  shape.back() = outputs;
  Tensor y = torch::stable::new_empty(x, shape);
  STD_TORCH_CHECK(x.scalar_type() == ScalarType::BFloat16 || x.scalar_type() == ScalarType::Float,
                  "float32 or bfloat16 is needed");
  in_form(values, scale, [&](auto form) {
    using F = decltype(form);
    x.scalar_type() == ScalarType::BFloat16 ? multiply<F, bf16>(x, values, scale, y, rows, size)
                                            : multiply<F, float>(x, values, scale, y, rows, size);
  });
  return y;
}

// ------------------------------------------------------------------------------------------------------------ experts

// A stack of matrices of `outputs` rows, one below the other.
struct Stack {
  const Tensor &tensor, &scales;
  const uint8_t* values;
  const bf16* scale;
  int64_t groups, panels;  // of one matrix
};

Stack stack_of(const Tensor& values, const Tensor& scale, int64_t matrices) {
  STD_TORCH_CHECK(values.size(0) % matrices == 0, "every matrix must end at a panel's edge");
  return {values,
          scale,
          static_cast<const uint8_t*>(values.const_data_ptr()),
          static_cast<const bf16*>(scale.const_data_ptr()),
          values.size(1),
          values.size(0) / matrices};
}

// Rows that ask one expert, side by side.
struct Asked {
  int64_t expert, first, count;
};

// One panel of a matrix times `count` rows of the input from `first` on: out [count] of sixteen sums.
template <class F>
void some_rows(const Stack& w, int64_t expert, int64_t panel, const Inputs& x, int64_t first, int64_t count,
               floats* out) {
  const int64_t at = (expert * w.panels + panel) * w.groups;
  const uint8_t* const values = w.values + at * F::BYTES;
  const bf16* const scale = w.scale + at * F::SCALES;
  int64_t t = 0;
  for (; t + 8 <= count; t += 8) tile<F, 8>(values, scale, x, first + t, out + t);
  if (count - t >= 4) tile<F, 4>(values, scale, x, first + t, out + t), t += 4;
  if (count - t >= 2) tile<F, 2>(values, scale, x, first + t, out + t), t += 2;
  if (count > t) tile<F, 1>(values, scale, x, first + t, out + t);
}

// The `top` largest of E scores, of equal ones the first, and their softmax. A score that is no number is never chosen
// before one that is.
void choose(const float* scores, int64_t experts, int64_t top, int64_t* ids, float* shares) {
  std::vector<float> left(scores, scores + experts);
  for (float& score : left)
    if (score != score) score = -INFINITY;
  std::vector<bool> taken(experts);
  for (int64_t j = 0; j < top; ++j) {
    int64_t best = -1;
    for (int64_t e = 0; e < experts; ++e)
      if (!taken[e] && (best < 0 || left[e] > left[best])) best = e;
    taken[best] = true;
    ids[j] = best;
  }
  float total = 0;
  for (int64_t j = 0; j < top; ++j) total += shares[j] = exp(all(left[ids[j]] - left[ids[0]]))[0];
  for (int64_t j = 0; j < top; ++j) shares[j] /= total;
}

inline void prepare(Inputs& in, int64_t rows, int64_t groups, int64_t group) {
  in.columns = groups * group;
  in.groups = groups;
  in.values.resize(std::max<size_t>(in.values.size(), rows * in.columns));
  in.scale.resize(std::max<size_t>(in.scale.size(), rows * groups));
  in.zero.resize(std::max<size_t>(in.zero.size(), rows * groups));
}

// A row and its answers, in the order of experts: pair t · top + j lies at place[t · top + j].
struct Order {
  std::vector<Asked> asked;
  std::vector<int64_t> place, row;  // row[place]: the row of the input that is there
};

Order by_expert(const std::vector<int64_t>& ids, int64_t experts, int64_t top) {
  std::vector<int64_t> next(experts + 1);
  for (const int64_t e : ids) ++next[e + 1];
  for (int64_t e = 0; e < experts; ++e) next[e + 1] += next[e];
  Order found{{}, std::vector<int64_t>(ids.size()), std::vector<int64_t>(ids.size())};
  for (int64_t e = 0; e < experts; ++e)
    if (next[e + 1] > next[e]) found.asked.push_back({e, next[e], next[e + 1] - next[e]});
  for (size_t pair = 0; pair < ids.size(); ++pair) {
    found.place[pair] = next[ids[pair]]++;
    found.row[found.place[pair]] = int64_t(pair) / top;
  }
  return found;
}

// Each panel of each asked expert, on all threads: each(asked, panel, sums [2 · count]).
template <class F>
void for_panels(const std::vector<Asked>& asked, int64_t panels, int64_t columns, int64_t most, const F& each) {
  const int64_t grain = std::max<int64_t>(1, 65536 / (PANEL * columns));
  torch::stable::parallel_for(0, int64_t(asked.size()) * panels, grain, [&](int64_t from, int64_t to) {
    thread_local std::vector<floats> kept;
    kept.resize(std::max<size_t>(kept.size(), 2 * most));
    for (int64_t unit = from; unit < to; ++unit) each(asked[unit / panels], unit % panels, kept.data());
  });
}

template <class T>
void mix(const Tensor& x, const Tensor& y, const Tensor& scores, int64_t top, const Stack& gate_up, const Stack& down,
         Tensor& out) {
  const int64_t size = x.size(1), rows = x.size(0), experts = scores.size(1) - 1, pairs = rows * top;
  const int64_t inner = gate_up.panels / 2 * PANEL;
  const float* const all_scores = static_cast<const float*>(scores.const_data_ptr());
  std::vector<int64_t> ids(pairs);
  std::vector<float> shares(pairs);
  for (int64_t t = 0; t < rows; ++t)
    choose(all_scores + t * (experts + 1), experts, top, &ids[t * top], &shares[t * top]);
  const Order order = by_expert(ids, experts, top);

  thread_local Inputs kept_in, kept_mid;
  thread_local std::vector<float> kept_opened, kept_answers;
  Inputs &in = kept_in, &mid = kept_mid;
  kept_opened.resize(std::max<size_t>(kept_opened.size(), pairs * inner));
  kept_answers.resize(std::max<size_t>(kept_answers.size(), pairs * size));
  float *const opened = kept_opened.data(), *const answers = kept_answers.data();
  const T* const from_x = static_cast<const T*>(x.const_data_ptr());
  in_form(gate_up.tensor, gate_up.scales, [&](auto form) {
    using F = decltype(form);
    prepare(in, pairs, gate_up.groups, F::GROUP);
    torch::stable::parallel_for(0, pairs, 4, [&](int64_t from, int64_t to) {
      for (int64_t p = from; p < to; ++p) take<F>(from_x + order.row[p] * size, size, in, p);
    });
    for_panels(order.asked, gate_up.panels / 2, 2 * in.columns, pairs, [&](const Asked& a, int64_t p, floats* made) {
      floats* const up = made + a.count;
      some_rows<F>(gate_up, a.expert, p, in, a.first, a.count, made);
      some_rows<F>(gate_up, a.expert, gate_up.panels / 2 + p, in, a.first, a.count, up);
      for (int64_t t = 0; t < a.count; ++t)
        store(opened + (a.first + t) * inner + p * PANEL, made[t] * sigmoid(made[t]) * up[t]);
    });
  });
  in_form(down.tensor, down.scales, [&](auto form) {
    using F = decltype(form);
    prepare(mid, pairs, down.groups, F::GROUP);
    torch::stable::parallel_for(0, pairs, 16, [&](int64_t from, int64_t to) {
      for (int64_t p = from; p < to; ++p) take<F>(opened + p * inner, inner, mid, p);
    });
    for_panels(order.asked, down.panels, mid.columns, pairs, [&](const Asked& a, int64_t p, floats* made) {
      some_rows<F>(down, a.expert, p, mid, a.first, a.count, made);
      for (int64_t t = 0; t < a.count; ++t) store(answers + (a.first + t) * size + p * PANEL, made[t]);
    });
  });
  const T* const from_y = static_cast<const T*>(y.const_data_ptr());
  T* const to = static_cast<T*>(out.mutable_data_ptr());
  torch::stable::parallel_for(0, rows, 4, [&](int64_t from, int64_t last) {
    for (int64_t t = from; t < last; ++t) {
      const float gate = sigmoid(all_scores[t * (experts + 1) + experts]);
      for (int64_t i = 0; i < size; i += LANES) {
        f8 total = load(from_y + t * size + i) * gate;
        for (int64_t j = 0; j < top; ++j)
          total += load(answers + order.place[t * top + j] * size + i) * shares[t * top + j];
        store(to + t * size + i, total);
      }
    }
  });
}

// x, y [T, h], contiguous; scores [T, E + 1] float32, the last the shared expert's; gate_up and down of E experts below
// each other -> [T, h]: y by its gate, and the answers of the `top` likeliest by their shares. Each row by itself.
Tensor experts(const Tensor& x, const Tensor& y, const Tensor& scores, int64_t top, const Tensor& gate_up,
               const Tensor& gate_up_scale, const Tensor& down, const Tensor& down_scale) {
  const int64_t count = scores.size(1) - 1;
  const Stack opening = stack_of(gate_up, gate_up_scale, count), closing = stack_of(down, down_scale, count);
  STD_TORCH_CHECK(opening.panels % 2 == 0 && closing.panels * PANEL == x.size(1) && top <= count, "sizes do not fit");
  Tensor out = torch::stable::empty_like(x);
  x.scalar_type() == ScalarType::BFloat16 ? mix<bf16>(x, y, scores, top, opening, closing, out)
                                          : mix<float>(x, y, scores, top, opening, closing, out);
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY(capsules_packed, m) {
  m.def("linear(Tensor x, Tensor values, Tensor scale, int outputs) -> Tensor");
  m.def(
      "experts(Tensor x, Tensor y, Tensor scores, int top, Tensor gate_up, Tensor gate_up_scale, Tensor down, "
      "Tensor down_scale) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(capsules_packed, CPU, m) {
  m.impl("linear", TORCH_BOX(&linear));
  m.impl("experts", TORCH_BOX(&experts));
}
