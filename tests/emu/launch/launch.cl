// OpenCL: pointers into LDS as arguments, a required workgroup, constants by value and by address.
__attribute__((reqd_work_group_size(16, 2, 1)))
kernel void locals(global uint *out, local uint *a, local ulong *b, constant uint *table, uint4 by_value) {
  uint i = __builtin_amdgcn_workitem_id_y() * 16 + __builtin_amdgcn_workitem_id_x();
  a[i] = table[i % 4] + i;
  b[i] = (ulong)by_value.z << 32 | i;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  global uint *p = out + 4 * i;
  p[0] = a[31 - i], p[1] = (uint)b[31 - i], p[2] = (uint)(b[31 - i] >> 32), p[3] = (uint)((local char *)b - (local char *)a);
}

kernel void sizes(global uint *out) {
  out[0] = __builtin_amdgcn_workgroup_size_x(), out[1] = __builtin_amdgcn_workgroup_size_y();
  out[2] = __builtin_amdgcn_workgroup_size_z(), out[3] = __builtin_amdgcn_grid_size_x();
  out[4] = __builtin_amdgcn_grid_size_y(), out[5] = __builtin_amdgcn_grid_size_z();
}
