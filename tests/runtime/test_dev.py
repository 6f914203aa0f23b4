"""The DEV grammar."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stuntgpu.isa.errors import Unmodelled
from stuntgpu.runtime.dev import BUILT, FAMILIES, DevError, DevSpec, parse_dev

FORMS = {
    "KFD+AMD": DevSpec("KFD", (), "AMD"),
    "AMD": DevSpec("KFD", (), "AMD"),
    "PCI+AMD": DevSpec("PCI", (), "AMD"),
    "USB+AMD": DevSpec("USB", (), "AMD"),
    "NVK+NV": DevSpec("NVK", (), "NV"),
    "CUDA": DevSpec("", (), "CUDA"),
    "NULL::gfx1100": DevSpec("", (), "NULL", "", "gfx1100"),
    "MOCKKFD+AMD": DevSpec("MOCKKFD", (), "AMD"),
    "MOCK+AMD": DevSpec("MOCKKFD", (), "AMD"),
    "MOCKPCI+AMD": DevSpec("MOCKPCI", (), "AMD"),
    "MOCKUSB+AMD": DevSpec("MOCKUSB", (), "AMD"),
    "MOCKNVK+NV": DevSpec("MOCKNVK", (), "NV"),
    "MOCK+NV": DevSpec("MOCKNVK", (), "NV"),
    "MOCK+CUDA:PTX": DevSpec("MOCK", (), "CUDA", "PTX"),
    "MOCKKFD:0,1+AMD:LLVM:gfx1100": DevSpec("MOCKKFD", (0, 1), "AMD", "LLVM", "gfx1100"),
    "kfd:1+amd:asm": DevSpec("KFD", (1,), "AMD", "ASM"),
    "MOCKKFD+AMD::gfx1201": DevSpec("MOCKKFD", (), "AMD", "", "gfx1201"),
}


@pytest.mark.parametrize("text", FORMS)
def test_dev_form_is_understood(text: str) -> None:
    assert parse_dev(text) == (FORMS[text],)


def test_dev_joins_devices_by_semicolons() -> None:
    assert parse_dev("KFD+AMD;NULL::gfx1201") == (FORMS["KFD+AMD"], DevSpec("", (), "NULL", "", "gfx1201"))


specs = st.sampled_from([(d, i) for d, family in FAMILIES.items() for i in family.interfaces]).flatmap(
    lambda di: st.builds(
        DevSpec, st.just(di[1]), st.lists(st.integers(0, 99), unique=True, max_size=3).map(tuple) if di[1] else
        st.just(()), st.just(di[0]), st.sampled_from(("", *FAMILIES[di[0]].renderers)), st.sampled_from(("", "gfx1100"))))


@given(specs)
def test_dev_spelling_parses_back(spec: DevSpec) -> None:
    assert parse_dev(str(spec)) == (spec,)


@pytest.mark.parametrize(("text", "column", "said"), [
    ("KFD+AMX", 4, "unknown device 'AMX', known: AMD, NV, CUDA, NULL"),
    ("XFD+AMD", 0, "unknown interface 'XFD' for AMD, known: KFD,"),
    ("KFD+NV", 0, "unknown interface 'KFD' for NV"),
    ("KFD:0,x+AMD", 6, "expected a GPU index, not 'x'"),
    ("KFD:+AMD", 4, "expected a GPU index, not ''"),
    ("KFD:1,1+AMD", 6, "GPU index 1 is named twice"),
    ("KFD+AMD:LLWM", 8, "unknown renderer 'LLWM' for AMD, known: LLVM, ASM, HIP, CL"),
    ("KFD+AMD:LLVM:gfx1100:more", 20, "expected DEVICE:RENDERER:ARCH and no more"),
    ("KFD+AMD;", 8, "unknown device ''"),
    ("+NULL", 0, "unknown interface '' for NULL, known: none"),
])
def test_dev_error_points_at_the_part(text: str, column: int, said: str) -> None:
    with pytest.raises(DevError) as caught:
        parse_dev(text)
    assert caught.value.column == column
    assert said in str(caught.value)
    assert str(caught.value).splitlines()[-1].index("^") == column + 2


@given(st.text(alphabet="KFDMOCAMNVPTX+:;,01 gfx", max_size=24))
def test_dev_of_any_text_parses_or_is_refused(text: str) -> None:
    column = 0
    try:
        parse_dev(text)
    except DevError as e:
        column = e.column
    assert 0 <= column <= len(text)


@pytest.mark.parametrize("text", [t for t, s in FORMS.items() if (s.interface, s.device) not in BUILT])
def test_dev_interface_without_code_is_unmodelled_by_name(text: str) -> None:
    spec = FORMS[text]
    with pytest.raises(Unmodelled, match=f"{spec.interface}\\+{spec.device}" if spec.interface else spec.device):
        spec.require_built()
