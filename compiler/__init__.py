"""Kernel compilers: kernel language to code object. None is built yet; a renderer named in DEV raises Unmodelled."""
