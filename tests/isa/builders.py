"""The builder modules by architecture, and evaluation of Python source in terms of one."""

from __future__ import annotations

import importlib
from types import ModuleType

from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.inst import Inst

MODULES: dict[str, ModuleType] = {
    arch.name: importlib.import_module(f"stuntgpu.isa.{arch.family}") for arch in ARCHES.values()
}


class Names(dict[str, object]):
    """Names of a module, builders as they are asked for, and `abs`."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__({n: getattr(module, n) for n in module.__all__}, abs=abs)
        self.module = module

    def __missing__(self, name: str) -> object:
        return getattr(self.module, name)


NAMES = {arch: Names(module) for arch, module in MODULES.items()}


def evaluate(arch: str, source: str) -> Inst:
    made = eval(source, {"__builtins__": {}}, NAMES[arch])
    assert isinstance(made, Inst), source
    return made
