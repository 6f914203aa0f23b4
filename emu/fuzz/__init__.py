"""Random instructions on the reference and on native code: `python -m stuntgpu.emu.fuzz --arch gfx1100 --minutes 3`.

Whatever the two tiers do differently is made small and printed as a test. The same seed draws the same cases.
"""
