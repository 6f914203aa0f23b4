"""Where the read-only fact files (ISA goldens, kernels) live, for tests that use them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def shared_dir() -> Path:
    """The folder of shared facts: $STUNTGPU_SHARED, or ../shared beside the repository.

    Skips the calling test when it is absent; fails it when CI is set, so that CI cannot go green
    by losing its data.
    """
    path = Path(os.environ.get("STUNTGPU_SHARED") or ROOT.parent / "shared")
    if path.is_dir():
        return path
    reason = f"no shared facts at {path} (set STUNTGPU_SHARED)"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
