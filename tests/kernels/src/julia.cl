// OpenCL C: escape times of a Julia set with fused multiply-adds, work-item functions by builtins, 64-bit sizes.
#define ITEM(a) (__builtin_amdgcn_workgroup_id_##a() * (size_t)SIDE + __builtin_amdgcn_workitem_id_##a())
#define SIDE 8
__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1))) void julia(__global uchar *out, float2 c, uint limit) {
  const size_t x = ITEM(x), y = ITEM(y), w = __builtin_amdgcn_grid_size_x();
  float2 z = (float2)((float)x * 0.0625f - 2.0f, (float)y * 0.0625f - 1.5f);
  uint k = 0;
  while (k < limit && __builtin_fmaf(z.x, z.x, z.y * z.y) < 4.0f) {
    z = (float2)(__builtin_fmaf(z.x, z.x, __builtin_fmaf(-z.y, z.y, c.x)), __builtin_fmaf(2.0f * z.x, z.y, c.y));
    k++;
  }
  out[y * w + x] = (uchar)k;
}
