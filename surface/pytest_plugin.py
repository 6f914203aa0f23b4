"""Pytest plugin (entry point `stuntgpu`): runs the session under the mock drivers when DEV asks for them."""

from __future__ import annotations
