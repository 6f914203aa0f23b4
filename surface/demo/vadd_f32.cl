// OpenCL C, no device library: c[i] = a[i] + b[i]
// clang-22 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -O2 -o vadd_f32.gfx1100.hsaco vadd_f32.cl
kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void vadd_f32(global const float *a, global const float *b, global float *c, uint n) {
  uint i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
  if (i < n)
    c[i] = a[i] + b[i];
}
