"""`python -m stuntgpu` is the `stuntgpu` command."""

from stuntgpu.cli import main

main()
