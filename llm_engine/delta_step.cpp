// One decoded token through the delta-net mixer on a CPU, as a torch operator: the twin of delta_kernel.py.
//
// The memory is read twice and written once per token, head by head, so that each head stays in the cache in between.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cmath>
#include <vector>

#include "vectors.h"

using namespace vectors;
using torch::stable::Tensor;
using torch::headeronly::ScalarType;

namespace {

// silu(sum over the taps) of one channel, and the window moved on by one
template <class T>
float convolve(const T* newest, T* window, const float* conv, int64_t taps, int64_t channels, int64_t c) {
  float total = 0;
  for (int64_t t = 0; t + 1 < taps; ++t) total += wide(window[t * channels + c]) * conv[t * channels + c];
  total += wide(newest[c]) * conv[(taps - 1) * channels + c];
  for (int64_t t = 0; t + 2 < taps; ++t) window[t * channels + c] = window[(t + 1) * channels + c];
  if (taps > 1) window[(taps - 2) * channels + c] = newest[c];
  return total;
}

void silu(float* x, int64_t size) {
  for (int64_t i = 0; i < size; i += LANES) {
    f8 v = all(0);
    for (int64_t j = 0; j < LANES && i + j < size; ++j) v[j] = x[i + j];
    v *= sigmoid(v);
    for (int64_t j = 0; j < LANES && i + j < size; ++j) x[i + j] = v[j];
  }
}

void unit(float* x, int64_t size, float scale) {
  float squares = 0;
  for (int64_t i = 0; i < size; ++i) squares += x[i] * x[i];
  const float factor = scale / std::sqrt(squares + 1e-6f);
  for (int64_t i = 0; i < size; ++i) x[i] *= factor;
}

// One head's memory [K][N]: forget, correct, read; out [N]
void mix(float* memory, const float* q, const float* k, const float* v, float forget, float beta, int64_t key,
         int64_t value, float* predicted, float* out) {
  for (int64_t j = 0; j < value; ++j) predicted[j] = out[j] = 0;
  for (int64_t i = 0; i < key; ++i)
    for (int64_t j = 0; j < value; ++j) predicted[j] += memory[i * value + j] * k[i];
  for (int64_t j = 0; j < value; ++j) predicted[j] = (v[j] - forget * predicted[j]) * beta;
  for (int64_t i = 0; i < key; ++i) {
    float* row = memory + i * value;
    for (int64_t j = 0; j < value; ++j) {
      row[j] = row[j] * forget + k[i] * predicted[j];
      out[j] += row[j] * q[i];
    }
  }
}

template <class T>
void step(const T* mixed, const T* gate, const T* ba, T* window, const float* conv, const float* decay,
          const float* dt_bias, const float* norm, float* memory, T* out, int64_t heads, int64_t key, int64_t value,
          int64_t channels, int64_t taps, float eps) {
  const int64_t key_dim = (channels - heads * value) / 2, keys = key_dim / key, share = heads / keys;
  std::vector<float> x(channels);
  for (int64_t c = 0; c < channels; ++c) x[c] = convolve(mixed, window, conv, taps, channels, c);
  silu(x.data(), channels);
  for (int64_t h = 0; h < keys; ++h) {
    unit(&x[h * key], key, 1.0f / std::sqrt(float(key)));
    unit(&x[key_dim + h * key], key, 1.0f);
  }
  torch::stable::parallel_for(0, heads, std::max<int64_t>(1, 32768 / (key * value)), [&](int64_t from, int64_t to) {
    std::vector<float> predicted(value), o(value), z(value);
    for (int64_t h = from; h < to; ++h) {
      const float a = wide(ba[heads + h]) + dt_bias[h];
      const float forget = std::exp(decay[h] * (a > 20.0f ? a : std::log1p(std::exp(a))));
      mix(memory + h * key * value, &x[h / share * key], &x[key_dim + h / share * key], &x[2 * key_dim + h * value],
          forget, sigmoid(wide(ba[h])), key, value, predicted.data(), o.data());
      float squares = 0;
      for (int64_t j = 0; j < value; ++j) {
        squares += o[j] * o[j];
        z[j] = wide(gate[h * value + j]);
      }
      silu(z.data(), value);
      const float scale = 1.0f / std::sqrt(squares / float(value) + eps);
      for (int64_t j = 0; j < value; ++j) put(out + h * value + j, o[j] * scale * norm[j] * z[j]);
    }
  });
}

template <class T>
T* data(const Tensor& x) { return static_cast<T*>(x.mutable_data_ptr()); }

Tensor delta_step(const Tensor& mixed, const Tensor& gate, const Tensor& ba, Tensor window, const Tensor& conv,
                  const Tensor& decay, const Tensor& dt_bias, const Tensor& norm, Tensor memory, double eps) {
  const int64_t heads = memory.size(0), key = memory.size(1), value = memory.size(2);
  Tensor out = torch::stable::new_empty(mixed, {1, heads * value});
  const auto run = [&](auto kind) {
    using T = decltype(kind);
    step(data<T>(mixed), data<T>(gate), data<T>(ba), data<T>(window), data<float>(conv), data<float>(decay),
         data<float>(dt_bias), data<float>(norm), data<float>(memory), data<T>(out), heads, key, value, conv.size(1),
         conv.size(0), float(eps));
  };
  if (mixed.scalar_type() == ScalarType::BFloat16)
    run(bf16{});
  else
    run(0.0f);
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY(llm_host, m) {
  m.def(
      "delta_step(Tensor mixed, Tensor gate, Tensor ba, Tensor(a!) window, Tensor conv, Tensor decay, Tensor dt_bias, "
      "Tensor norm, Tensor(b!) memory, float eps) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(llm_host, CPU, m) { m.impl("delta_step", TORCH_BOX(&delta_step)); }
