"""From forms to LLVM modules: picks the kind of handler, joins functions that compile together.

Errors:  Unmodelled for what no handler does.
"""

from __future__ import annotations

from collections.abc import Iterable

from stuntgpu.emu.forms import Form, row
from stuntgpu.emu.handler_base import Function
from stuntgpu.emu.handler_lane import LaneHandler
from stuntgpu.emu.handler_loop import LoopHandler
from stuntgpu.emu.handler_matrix import MatrixHandler
from stuntgpu.emu.handler_mfma import MfmaHandler
from stuntgpu.emu.handler_wave import WaveHandler
from stuntgpu.emu.lower import NotVector
from stuntgpu.emu.lower_text import Host
from stuntgpu.isa.ir import Const, For, Op, Semantics, Store, expressions, statements

#: Branch weights of the exits that are hardly ever taken.
_RARE = '!0 = !{!"branch_weights", i32 1, i32 2000}'

#: Bits of a value that may have parts at computed places in vectors of all lanes.
_WIDE = 128
#: Operations written out lane by lane even in vectors.
_BY_LANE = frozenset(("trig_preop.f64",))


def build(form: Form, host: Host) -> Function:
    """The handler of a form. Raises Unmodelled."""
    facts = row(form.arch, form.name)
    if facts.is_matrix and form.name.startswith(("V_MFMA_", "V_SMFMAC_")):
        return MfmaHandler(form, facts.sem, host).function()
    if facts.is_matrix:
        return MatrixHandler(form, facts.sem, host).function()
    if facts.sem.scope == "wave":
        return WaveHandler(form, facts.sem, host).function()
    if facts.is_atomic or _stores_in_loops(facts.sem) or _is_long(facts.sem):
        return LoopHandler(form, facts.sem, host).function()
    try:
        return LaneHandler(form, facts.sem, host).function()
    except NotVector:
        return LoopHandler(form, facts.sem, host).function()


def _stores_in_loops(sem: Semantics) -> bool:
    """Several stores of a lane come before those of the next."""
    return any(isinstance(x, Store) for s in statements(sem.body) if isinstance(s, For) for x in statements(s.body))


def _is_long(sem: Semantics) -> bool:
    """Many elements of a lane one by one, or parts of long values: for all lanes at once, up to seconds of compiling."""
    return any(isinstance(x, Op) and (x.op in _BY_LANE or (x.op in ("extract", "insert") and _is_computed(x)))
               for x in expressions(sem.body))


def _is_computed(x: Op) -> bool:
    """A part of a long value whose place is not known."""
    return x.args[0].width > _WIDE and not isinstance(x.args[1], Const)


def module(functions: Iterable[Function]) -> str:
    """LLVM assembly of functions that compile together."""
    declarations: dict[str, str] = {}
    texts = []
    for f in functions:
        declarations.update(f.declarations)
        texts.append(f.text)
    return "\n".join([*declarations.values(), *texts, _RARE, ""])

