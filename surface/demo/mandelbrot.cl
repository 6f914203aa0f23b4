// Escape times of c = (x0 + x*step, y0 + y*step), one work-item a point: float arithmetic, divergent loops, EXEC at work.
// clang-22 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -O2 -o mandelbrot.gfx1100.hsaco mandelbrot.cl
#pragma OPENCL FP_CONTRACT OFF
#define TILE 8

kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void mandelbrot(global uint *out, uint width, uint height, uint limit, float x0, float y0, float step_x, float step_y) {
  uint x = __builtin_amdgcn_workgroup_id_x() * TILE + __builtin_amdgcn_workitem_id_x();
  uint y = __builtin_amdgcn_workgroup_id_y() * TILE + __builtin_amdgcn_workitem_id_y();
  if (x >= width || y >= height)
    return;
  float cr = x0 + step_x * (float)x, ci = y0 + step_y * (float)y, zr = 0.0f, zi = 0.0f;
  uint steps = 0;
  while (steps < limit && zr * zr + zi * zi <= 4.0f) {
    float re = zr * zr - zi * zi + cr;
    zi = 2.0f * zr * zi + ci;
    zr = re;
    steps++;
  }
  out[y * width + x] = steps;
}
