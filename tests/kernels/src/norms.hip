// Rows of a network: exp, log, reciprocal and square root of clang's making, sums over lanes, f16 and bf16 in and out.
#include "device.h"
DEVICE f32 wave_sum(f32 v) {
  for (u32 k = WAVE / 2; k; k >>= 1) v += shuffle_xor(v, k);
  return v;
}
// One wave a row. Online softmax: each lane keeps the largest so far and the sum scaled to it.
template <class T> DEVICE void softmax(const T *in, T *out, u32 columns) {
  const T *row = in + bx() * columns;
  f32 top = -__builtin_inff(), sum = 0;
  for (u32 c = tx(); c < columns; c += WAVE) {
    f32 v = row[c], higher = max(top, v);
    sum = sum * __builtin_elementwise_exp(top - higher) + __builtin_elementwise_exp(v - higher);
    top = higher;
  }
  for (u32 k = WAVE / 2; k; k >>= 1) {
    f32 other = shuffle_xor(top, k), others = shuffle_xor(sum, k), higher = max(top, other);
    sum = top == -__builtin_inff() ? 0 : sum * __builtin_elementwise_exp(top - higher);
    sum += other == -__builtin_inff() ? 0 : others * __builtin_elementwise_exp(other - higher);
    top = higher;
  }
  for (u32 c = tx(); c < columns; c += WAVE) out[bx() * columns + c] = (T)(__builtin_elementwise_exp((f32)row[c] - top) / sum);
}
KERNEL SIZED(WAVE) softmax_f32(const f32 *in, f32 *out, u32 columns) { softmax(in, out, columns); }
KERNEL SIZED(WAVE) softmax_f16(const f16 *in, f16 *out, u32 columns) { softmax(in, out, columns); }
KERNEL SIZED(WAVE) softmax_bf16(const bf16 *in, bf16 *out, u32 columns) { softmax(in, out, columns); }

KERNEL SIZED(WAVE) layernorm(const f32 *in, const f32 *gain, const f32 *bias, f32 *out, u32 columns) {
  const f32 *row = in + bx() * columns;
  f32 sum = 0, squares = 0;
  for (u32 c = tx(); c < columns; c += WAVE) sum += row[c];
  f32 mean = wave_sum(sum) / (f32)columns;
  for (u32 c = tx(); c < columns; c += WAVE) squares = fma(row[c] - mean, row[c] - mean, squares);
  f32 scale = 1.0f / __builtin_sqrtf(wave_sum(squares) / (f32)columns + 1e-5f);
  for (u32 c = tx(); c < columns; c += WAVE) out[bx() * columns + c] = fma((row[c] - mean) * scale, gain[c], bias[c]);
}
KERNEL SIZED(WAVE) rmsnorm(const bf16 *in, const f16 *gain, f16 *out, u32 columns) {
  const bf16 *row = in + bx() * columns;
  f32 squares = 0;
  for (u32 c = tx(); c < columns; c += WAVE) squares = fma((f32)row[c], (f32)row[c], squares);
  f32 scale = __builtin_amdgcn_rsqf(wave_sum(squares) / (f32)columns + 1e-6f);
  for (u32 c = tx(); c < columns; c += WAVE) out[bx() * columns + c] = (f16)((f32)row[c] * scale) * gain[c];
}

// Elementwise: tanh by exp in f32 and f16, logarithms, powers, sine and cosine of small angles.
KERNEL activations(const f32 *in, f32 *gelu, f16 *half, f32 *logs, f32 *turns, f32 *powers, u32 n) {
  u32 i = item();
  if (i >= n) return;
  f32 x = in[i], y = 0.7978845608f * fma(0.044715f * x * x, x, x);
  f32 t = 1.0f - 2.0f / (__builtin_elementwise_exp(2.0f * y) + 1.0f);
  gelu[i] = 0.5f * x * (1.0f + t);
  f16 h = (f16)x;
  half[i] = h / ((f16)1.0f + __builtin_elementwise_exp(-h));
  logs[3 * i] = __builtin_elementwise_log(__builtin_fabsf(x));
  logs[3 * i + 1] = __builtin_elementwise_log2(__builtin_fabsf(x));
  logs[3 * i + 2] = __builtin_elementwise_log10(__builtin_fabsf(x) * 1e-40f);
  turns[2 * i] = __builtin_elementwise_sin(x);
  turns[2 * i + 1] = __builtin_elementwise_cos(x);
  powers[2 * i] = __builtin_elementwise_exp2(x * 20.0f);
  powers[2 * i + 1] = __builtin_elementwise_exp10(-x * 6.0f);
}
