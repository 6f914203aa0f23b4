// out[i] = a[i] + b[i] for i < n. OpenCL C without a device library:
// clang-22 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -O2 -o vadd_f32.gfx1100.hsaco vadd_f32.cl
#define WORKGROUP 256

kernel __attribute__((reqd_work_group_size(WORKGROUP, 1, 1)))
void vadd_f32(global const float *a, global const float *b, global float *out, uint n) {
  uint i = __builtin_amdgcn_workgroup_id_x() * WORKGROUP + __builtin_amdgcn_workitem_id_x();
  if (i < n)
    out[i] = a[i] + b[i];
}
