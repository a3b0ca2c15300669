// The delta-net mixer of one sequence on a CPU, as a torch operator: convolution, gates, delta rule, norm and gate.
//
// For one decoded token it is the twin of delta_kernel.py; a chunk runs the same recurrence token by token. What a
// column of the memory becomes does not depend on its neighbours, so a strip of columns goes through all tokens while
// it lies in the first-level cache; that needs no more arithmetic than the chunked form and no system to solve.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "vectors.h"

using namespace vectors;
using torch::stable::Tensor;
using torch::headeronly::ScalarType;

namespace {

constexpr int64_t VECTORS = 4, COLUMNS = VECTORS * WIDE;  // eight sums at once: fewer would wait for each other

struct Sizes {
  int64_t rows, heads, keys, key, value, channels, taps;
};

// What a head's rows bring: q and k [rows][channels], and per row how much is forgotten, how strongly is written, k · q.
struct Row {
  const float *q, *k;
  float forget, beta, agreement;
};

// x[c] = silu(sum over the taps), with tap t taken from past[t]
template <class T>
void convolve(const std::vector<const T*>& past, const float* conv, float* x, int64_t channels) {
  int64_t c = 0;
  for (; c + WIDE <= channels; c += WIDE) {
    fw total{};
    for (size_t t = 0; t < past.size(); ++t) total += load<fw>(past[t] + c) * load<fw>(conv + t * channels + c);
    store(x + c, total * sigmoid(total));
  }
  for (; c < channels; ++c) {
    float total = 0;
    for (size_t t = 0; t < past.size(); ++t) total += wide(past[t][c]) * conv[t * channels + c];
    x[c] = total * sigmoid(total);
  }
}

void unit(float* x, int64_t size, float scale) {
  const float factor = scale / std::sqrt(dot(x, x, size) + 1e-6f);
  for (int64_t i = 0; i < size; ++i) x[i] *= factor;
}

// A row of k or q meets every row of the memory: sums [VECTORS] += held · x
inline void meet(const fw* held, float x, fw* sums) {
  for (int64_t j = 0; j < VECTORS; ++j) sums[j] += held[j] * x;
}

// Columns [key][COLUMNS] of a memory, its rows `stride` apart, through all rows: forget, correct, read. One pass writes
// row t and reads for the row after it; a read before the write becomes one after it by k · q times the correction.
// values [rows][COLUMNS] come in, outputs go out
void fold(float* memory, int64_t stride, const std::vector<Row>& rows, float* values, int64_t key) {
  fw predicted[VECTORS]{}, read[VECTORS]{}, correction[VECTORS], held[VECTORS];
  for (int64_t i = 0; i < key; ++i) {
    for (int64_t j = 0; j < VECTORS; ++j) held[j] = load<fw>(memory + i * stride + j * WIDE);
    meet(held, rows[0].k[i], predicted);
    meet(held, rows[0].q[i], read);
  }
  for (size_t t = 0; t < rows.size(); ++t) {
    const Row& now = rows[t];
    for (int64_t j = 0; j < VECTORS; ++j) {
      float* const value = values + t * COLUMNS + j * WIDE;
      correction[j] = (load<fw>(value) - now.forget * predicted[j]) * now.beta;
      store(value, now.forget * read[j] + now.agreement * correction[j]);
      predicted[j] = read[j] = fw{};
    }
    const auto write = [&](int64_t i) {
      for (int64_t j = 0; j < VECTORS; ++j) {
        float* const at = memory + i * stride + j * WIDE;
        held[j] = load<fw>(at) * now.forget + now.k[i] * correction[j];
        store(at, held[j]);
      }
    };
    if (t + 1 == rows.size()) {
      for (int64_t i = 0; i < key; ++i) write(i);
      return;
    }
    const Row& next = rows[t + 1];
    for (int64_t i = 0; i < key; ++i) {
      write(i);
      meet(held, next.k[i], predicted);
      meet(held, next.q[i], read);
    }
  }
}

// What a head read, [rows][value]: norm, then the gate
template <class T>
void leave(const float* read, const float* norm, const T* gate, T* out, int64_t size, float eps) {
  const float scale = 1.0f / std::sqrt(dot(read, read, size) / float(size) + eps);
  int64_t j = 0;
  for (; j + WIDE <= size; j += WIDE) {
    const fw z = load<fw>(gate + j);
    store(out + j, load<fw>(read + j) * scale * load<fw>(norm + j) * (z * sigmoid(z)));
  }
  for (; j < size; ++j) put(out + j, read[j] * scale * norm[j] * (wide(gate[j]) * sigmoid(wide(gate[j]))));
}

float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

template <class T>
T* data(const Tensor& x) { return static_cast<T*>(x.mutable_data_ptr()); }

template <class T>
void mix(const Sizes& s, const Tensor& mixed, const Tensor& gate, const Tensor& ba, const Tensor& window,
         const Tensor& conv, const Tensor& decay, const Tensor& dt_bias, const Tensor& norm, const Tensor& memory,
         Tensor& out, float eps) {
  const int64_t key_dim = s.keys * s.key, share = s.heads / s.keys, past = s.taps - 1;
  thread_local std::vector<float> kept;
  kept.resize(std::max<size_t>(kept.size(), s.rows * s.channels));
  float* const x = kept.data();  // [rows][channels]: q, k, v of all heads
  const auto history = [&](int64_t t) {
    return t < past ? data<T>(window) + t * s.channels : data<T>(mixed) + (t - past) * mixed.stride(0);
  };
  torch::stable::parallel_for(0, s.rows, std::max<int64_t>(1, 16384 / s.channels), [&](int64_t from, int64_t to) {
    std::vector<const T*> seen(s.taps);
    for (int64_t t = from; t < to; ++t) {
      for (int64_t tap = 0; tap < s.taps; ++tap) seen[tap] = history(t + tap);
      float* const row = x + t * s.channels;
      convolve(seen, data<float>(conv), row, s.channels);
      for (int64_t h = 0; h < s.keys; ++h) {
        unit(row + h * s.key, s.key, 1.0f / std::sqrt(float(s.key)));
        unit(row + key_dim + h * s.key, s.key, 1.0f);
      }
    }
  });
  for (int64_t t = 0; t < past; ++t) std::copy_n(history(s.rows + t), s.channels, data<T>(window) + t * s.channels);

  const int64_t grain = std::max<int64_t>(1, 32768 / (s.key * s.value * s.rows));
  torch::stable::parallel_for(0, s.heads, grain, [&](int64_t from, int64_t to) {
    std::vector<float> block(s.key * COLUMNS), values(s.rows * COLUMNS), read(s.rows * s.value);
    std::vector<Row> rows(s.rows);
    for (int64_t h = from; h < to; ++h) {
      for (int64_t t = 0; t < s.rows; ++t) {
        const float* const q = x + t * s.channels + h / share * s.key;
        const T* const gates = data<T>(ba) + t * 2 * s.heads + h;
        const float rate = data<float>(decay)[h] * softplus(wide(gates[s.heads]) + data<float>(dt_bias)[h]);
        rows[t] = {q, q + key_dim, std::exp(rate), sigmoid(wide(gates[0])), dot(q, q + key_dim, s.key)};
      }
      float* const held = data<float>(memory) + h * s.key * s.value;
      for (int64_t j = 0; j < s.value; j += COLUMNS) {
        const int64_t width = std::min(COLUMNS, s.value - j);
        const float* const v = x + 2 * key_dim + h * s.value + j;
        for (int64_t t = 0; t < s.rows; ++t) std::copy_n(v + t * s.channels, width, &values[t * COLUMNS]);
        if (s.rows == 1 && width == COLUMNS) {  // read once, written once: a copy would be the larger half
          fold(held + j, s.value, rows, values.data(), s.key);
        } else {
          for (int64_t i = 0; i < s.key; ++i) std::copy_n(held + i * s.value + j, width, &block[i * COLUMNS]);
          fold(block.data(), COLUMNS, rows, values.data(), s.key);
          for (int64_t i = 0; i < s.key; ++i) std::copy_n(&block[i * COLUMNS], width, held + i * s.value + j);
        }
        for (int64_t t = 0; t < s.rows; ++t) std::copy_n(&values[t * COLUMNS], width, &read[t * s.value + j]);
      }
      for (int64_t t = 0; t < s.rows; ++t)
        leave(&read[t * s.value], data<float>(norm), data<T>(gate) + t * gate.stride(0) + h * s.value,
              data<T>(out) + (t * s.heads + h) * s.value, s.value, eps);
    }
  });
}

// count: how many of the rows are tokens; the rest is neither read nor folded, and zero on the way out.
Tensor delta_rule(const Tensor& mixed, const Tensor& gate, const Tensor& ba, Tensor window, const Tensor& conv,
                  const Tensor& decay, const Tensor& dt_bias, const Tensor& norm, Tensor memory,
                  std::optional<Tensor> count, double eps) {
  Sizes s{mixed.size(0), memory.size(0), 0, memory.size(1), memory.size(2), conv.size(1), conv.size(0)};
  s.keys = (s.channels - s.heads * s.value) / (2 * s.key);
  Tensor out = torch::stable::new_empty(mixed, {s.rows, s.heads * s.value});
  if (count) {
    torch::stable::zero_(out);
    s.rows = *data<int64_t>(*count);
  }
  if (mixed.scalar_type() == ScalarType::BFloat16)
    mix<bf16>(s, mixed, gate, ba, window, conv, decay, dt_bias, norm, memory, out, float(eps));
  else
    mix<float>(s, mixed, gate, ba, window, conv, decay, dt_bias, norm, memory, out, float(eps));
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY(llm_host, m) {
  m.def(
      "delta_rule(Tensor mixed, Tensor gate, Tensor ba, Tensor(a!) window, Tensor conv, Tensor decay, Tensor dt_bias, "
      "Tensor norm, Tensor(b!) memory, Tensor? count, float eps) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(llm_host, CPU, m) { m.impl("delta_rule", TORCH_BOX(&delta_rule)); }
