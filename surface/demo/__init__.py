"""The demonstration: kernels compiled by clang, run through the runtime and the mock driver, checked against numpy.

`stuntgpu demo` is the whole path once: sysfs topology, ioctls, mapped rings, PM4 packets, doorbells, SDMA copies
and the instruction emulator. With DEV naming real hardware the same code runs there.

Units:   grids in workgroups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from stuntgpu.runtime import Device

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What one kernel computed, beside what numpy says; `picture` draws the output as lines of text."""

    kernel: str
    out: Array
    expected: Array
    picture: Callable[[Array], Iterator[str]]

    @property
    def wrong(self) -> int:
        """Elements that differ."""
        return int(np.count_nonzero(self.out != self.expected))


def code_object(kernel: str, arch: str) -> bytes:
    """The kernel's code object for `arch`. Raises FileNotFoundError naming those that are shipped."""
    source = files(__name__) / f"{kernel}.{arch}.hsaco"
    if not source.is_file():
        shipped = sorted(entry.name for entry in files(__name__).iterdir() if entry.name.endswith(".hsaco"))
        raise FileNotFoundError(f"the demonstration has no {source.name}; it has {', '.join(shipped)}")
    return source.read_bytes()


def vadd(dev: Device, n: int = 1000) -> Result:
    """out[i] = a[i] + b[i]; n is no multiple of the workgroup, so the last wave is partly masked."""
    a, b = np.arange(n, dtype=np.float32), np.linspace(1, 2, n, dtype=np.float32)
    out = dev.copyin(np.zeros(n, np.float32))
    kernel = dev.load(code_object("vadd_f32", dev.arch), "vadd_f32")
    kernel(dev.copyin(a), dev.copyin(b), out, np.uint32(n), global_size=(-(-n // 256), 1, 1), local_size=(256, 1, 1))

    def picture(values: Array) -> Iterator[str]:
        yield f"{'i':>6} {'a':>10} {'b':>10} {'out':>12} {'expected':>12}"
        for i in (0, 1, 2, n // 2, n - 1):
            yield f"{i:6} {a[i]:10.4f} {b[i]:10.4f} {values[i]:12.5f} {a[i] + b[i]:12.5f}"

    return Result("vadd_f32", dev.copyout(out), a + b, picture)


@dataclass(frozen=True, slots=True)
class View:
    """The part of the complex plane that is drawn, and how."""

    width: int = 76
    height: int = 26
    limit: int = 48
    x0: float = -2.1
    y0: float = -1.2
    step_x: float = 0.038
    step_y: float = 0.096

    @property
    def corner_and_step(self) -> tuple[np.float32, np.float32, np.float32, np.float32]:
        """x0, y0, step_x, step_y as the kernel takes them."""
        return np.float32(self.x0), np.float32(self.y0), np.float32(self.step_x), np.float32(self.step_y)


VIEW = View()
SHADES = np.array(list(" .:-=+*#%@"))
TILE = 8


def mandelbrot(dev: Device, view: View = VIEW) -> Result:
    """Escape times: lanes leave the loop one by one, so EXEC does the work."""
    shape = (view.height, view.width)
    out = dev.copyin(np.zeros(shape, np.uint32))
    kernel = dev.load(code_object("mandelbrot", dev.arch), "mandelbrot")
    kernel(out, np.uint32(view.width), np.uint32(view.height), np.uint32(view.limit), *view.corner_and_step,
           global_size=(-(-view.width // TILE), -(-view.height // TILE), 1), local_size=(TILE, TILE, 1))

    def picture(values: Array) -> Iterator[str]:
        shade = SHADES[values.astype(np.int64) * (len(SHADES) - 1) // view.limit]
        return ("  " + "".join(row) for row in shade)

    return Result("mandelbrot", dev.copyout(out).reshape(shape), escape_times(view), picture)


def escape_times(view: View) -> Array:
    """The same computation by numpy, float32 throughout and in the kernel's order."""
    x0, y0, step_x, step_y = view.corner_and_step
    cr = x0 + step_x * np.arange(view.width, dtype=np.float32)[None, :]
    ci = y0 + step_y * np.arange(view.height, dtype=np.float32)[:, None]
    zr = np.zeros((view.height, view.width), np.float32)
    zi, steps = zr.copy(), np.zeros(zr.shape, np.uint32)
    for _ in range(view.limit):
        inside = zr * zr + zi * zi <= np.float32(4)
        re = zr * zr - zi * zi + cr
        zi = np.where(inside, np.float32(2) * zr * zi + ci, zi)
        zr = np.where(inside, re, zr)
        steps += inside
    return steps


def run(dev: Device) -> Iterator[Result]:
    """Every demonstration kernel in turn."""
    yield vadd(dev)
    yield mandelbrot(dev)
