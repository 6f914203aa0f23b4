"""The demonstration: kernels compiled by clang, run through the mock driver and checked against numpy."""
