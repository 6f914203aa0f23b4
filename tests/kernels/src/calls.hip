// Calls: recursion on a stack in scratch, function pointers that differ by lane, tables of functions, switches, dynamic stacks.
#include "device.h"

NOINLINE u32 fibonacci(u32 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
NOINLINE u32 ackermann(u32 m, u32 n) { return m == 0 ? n + 1 : ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1)); }
NOINLINE void quicksort(i32 *first, i32 *last) {
  if (last - first < 2) return;
  i32 pivot = first[(last - first) / 2], *low = first, *high = last - 1;
  while (low <= high) {
    while (*low < pivot) low++;
    while (*high > pivot) high--;
    if (low <= high) {
      i32 t = *low;
      *low++ = *high, *high-- = t;
    }
  }
  quicksort(first, high + 1);
  quicksort(low, last);
}
// Every lane to its own depth; even lanes sort in memory, odd ones in scratch.
KERNEL recursion(const u32 *in, u32 *numbers, i32 *rows, u32 n, u32 length) {
  u32 i = item();
  if (i >= n) return;
  numbers[i] = in[i] & 1 ? fibonacci(in[i] % 9) : ackermann(in[i] % 3, in[i] % 4);
  i32 own[16], *row = rows + i * length;
  if (i & 1) {
    for (u32 k = 0; k < length; k++) own[k] = row[k];
    row = own;
  }
  quicksort(row, row + length);
  for (u32 k = 0; k < length; k++) rows[i * length + k] = row[k];
}

// Recursion through pointers, behind which lanes differ; even and odd are told by counting down.
typedef u32 (*Step)(u32 n, const void *next);
NOINLINE u32 even(u32 n, const void *next);
NOINLINE u32 odd(u32 n, const void *next) { return n ? 2 * ((Step)next)(n - 1, (const void *)odd) + 1 : 0; }
NOINLINE u32 even(u32 n, const void *next) { return n ? 3 * ((Step)next)(n - 1, (const void *)even) : 1; }
KERNEL by_pointer(const u32 *in, u32 *out, u32 n) {
  u32 i = item();
  if (i >= n) return;
  Step step = in[i] & 16 ? odd : even;
  out[i] = step(in[i] & 15, in[i] & 16 ? (const void *)even : (const void *)odd);
}

// Shapes with tables of functions in constant memory, as virtual calls are made.
struct Shape;
struct Table {
  f32 (*area)(const Shape *);
  void (*grow)(Shape *, f32);
};
struct Shape {
  const __attribute__((address_space(4))) Table *table;
  f32 a, b;
};
NOINLINE f32 area_of_box(const Shape *s) { return s->a * s->b; }
NOINLINE f32 area_of_triangle(const Shape *s) { return s->a * s->b * 0.5f; }
NOINLINE f32 area_of_square(const Shape *s) { return s->a * s->a; }
NOINLINE void grow_both(Shape *s, f32 by) { s->a *= by, s->b *= by; }
NOINLINE void grow_first(Shape *s, f32 by) { s->a += by; }
CONSTANT Table tables[3] = {{area_of_box, grow_both}, {area_of_triangle, grow_first}, {area_of_square, grow_both}};
KERNEL shapes(const u32 *kinds, const f32 *sides, f32 *out, u32 n) {
  u32 i = item();
  if (i >= n) return;
  Shape s = {(const __attribute__((address_space(4))) Table *)&tables[kinds[i] % 3], sides[2 * i], sides[2 * i + 1]};
  for (u32 k = 0; k < kinds[i] % 4; k++) s.table->grow(&s, 2.0f);
  out[i] = s.table->area(&s);
}

// A little machine: programs of operations that a switch tells apart, by lane and by wave.
DEVICE i32 interpret(const u8 *code, u32 length, i32 x) {
  i32 y = 1, z = 0;
  for (u32 pc = 0; pc < length; pc++) {
    switch (code[pc] & 15) {
    case 0: x += 7; break;
    case 1: x -= y; break;
    case 2: y = x ^ (y << 3); break;
    case 3: x *= 5; break;
    case 4: x = __builtin_rotateleft32(x, y & 31); break;
    case 5: z += __builtin_popcount(x); break;
    case 6: x = x < y ? y : x; break;
    case 7: y = -y; break;
    case 8: x = z; break;
    case 9: x >>= 1; break;
    case 10: if (x & 1) pc++; break;
    case 11: x = y / ((z & 7) + 1); break;
    case 12: z ^= x; break;
    case 13: return x + z;
    default: x++; break;
    }
  }
  return x ^ y ^ z;
}
KERNEL interpreter(const u8 *code, i32 *out, i32 *together, u32 length, u32 n) {
  u32 i = item();
  if (i >= n) return;
  out[i] = interpret(code + i * length, length, i);
  together[i] = interpret(code + bx() * length, length, i); // one jump a step
}

// A chain of calls, each with more values alive across it than fit in what callees save.
template <int DEPTH> NOINLINE u32 chain(u32 a, u32 b, u32 c, u32 d) {
  if constexpr (DEPTH == 0) return a + b * c - d;
  else {
  u32 v[24];
#pragma unroll
  for (u32 k = 0; k < 24; k++) v[k] = (a + k) * (b ^ (k << DEPTH)) + c * k;
  u32 below = chain<DEPTH - 1>(v[3], v[7] ^ d, v[11], v[23]);
#pragma unroll
  for (u32 k = 0; k < 24; k++) below = __builtin_rotateleft32(below, 5) ^ v[k];
  return below;
  }
}
KERNEL deep_calls(const u32 *in, u32 *out, u32 n) {
  u32 i = item();
  if (i < n) out[i] = chain<6>(in[i], i, bx(), in[i] >> 7);
}

// Arrays whose length only the lane knows.
NOINLINE u32 josephus(u32 n, u32 step) {
  u8 *alive = (u8 *)__builtin_alloca(n);
  for (u32 k = 0; k < n; k++) alive[k] = 1;
  u32 at = n - 1;
  for (u32 left = n; left; left--) {
    for (u32 k = 0; k < step; k++) do at = (at + 1) % n; while (!alive[at]);
    alive[at] = 0;
  }
  return at;
}
KERNEL dynamic_stack(const u32 *in, u32 *out, u32 n) {
  u32 i = item();
  if (i < n) out[i] = josephus(1 + in[i] % 40, 1 + in[i] % 5);
}
