"""Part of stuntgpu."""
