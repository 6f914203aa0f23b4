"""Speed of the emulator on the hand-written kernels of ../shared/bench-kernels: `python -m benchmarks`."""
