"""A second process finds everything compiled: counted, not timed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

VADD_THROUGH_MOCKKFD = """
import json
import numpy as np
from stuntgpu import demo
from stuntgpu.mockdrivers.client import server
from stuntgpu.runtime import Device

with Device() as dev:
    result = demo.vadd(dev)
print(json.dumps({"wrong": result.wrong, **server().request(do="status")["handlers"]}))
"""


def vadd(cache: Path) -> dict[str, int]:
    """Handlers compiled and loaded by the server of a fresh session, and wrong results."""
    kept = {k: v for k, v in os.environ.items() if k not in ("STUNTGPU_SERVER", "STUNTGPU_TREE", "LD_PRELOAD")}
    env = {**kept, "DEV": "MOCKKFD+AMD", "STUNTGPU_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-c", VADD_THROUGH_MOCKKFD], env=env, capture_output=True, text=True,
                          timeout=120, check=True)
    counted: dict[str, int] = json.loads(done.stdout)
    return counted


def test_second_session_compiles_nothing(tmp_path: Path) -> None:
    first, second = vadd(tmp_path), vadd(tmp_path)
    assert first["wrong"] == second["wrong"] == 0
    assert first["compiled"] > 5
    assert second["compiled"] == 0
    assert second["loaded"] >= first["compiled"]
