"""LLVM by way of llvmlite: assembly text to a linked image. Imported only when something must compile."""

from __future__ import annotations

from functools import lru_cache

from llvmlite import binding as llvm

from stuntgpu.emu.objects import Image, link


@lru_cache(maxsize=1)
def _machine() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1,
        reloc="pic", codemodel="small")


def compile_module(text: str) -> Image:
    """Optimise (O1), assemble and link. Raises RuntimeError with LLVM's message for bad text."""
    machine = _machine()
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return link(machine.emit_object(module))
