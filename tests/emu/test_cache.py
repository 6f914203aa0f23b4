"""The cache of compiled handlers: warm processes compile nothing, and nothing unchecked is ever run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stuntgpu.emu import cache as caches
from stuntgpu.emu.cache import VARIABLE, Cache, Folder, counters, pack, unpack
from stuntgpu.emu.forms import Form, Slot
from stuntgpu.emu.objects import Image

XOR = Form("gfx1100", "V_XOR_B32", 32, 0, (Slot("S0", "v"), Slot("S1", "s"), Slot("written D0", "v")), (), "", 0,
           0, True, None)  # fmt: skip
MOVE = Form("gfx1100", "V_MOV_B32", 32, 0, (Slot("S0", "v"), Slot("written D0", "v")), (), "", 0, 0, True, None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "cache"
    path.mkdir(mode=0o700)
    return path


def fresh(root: Path) -> Cache:
    """What another process would have."""
    return Cache(Folder.open(root))


def bundle(root: Path) -> Path:
    (path,) = root.glob("*/*.bin")
    return path


def compiled_by(c: Cache, *forms: Form) -> tuple[int, int]:
    """(compiled, loaded) that asking for the forms takes."""
    before = counters.compiled, counters.loaded
    addresses = c.handlers(forms)
    assert len(set(addresses.values())) == len(set(forms))
    return counters.compiled - before[0], counters.loaded - before[1]


def test_first_use_compiles_and_the_next_process_loads(root: Path) -> None:
    assert compiled_by(fresh(root), XOR, MOVE) == (2, 0)
    assert compiled_by(fresh(root), MOVE, XOR, XOR) == (0, 2)


def test_a_second_kernel_compiles_only_its_new_forms(root: Path) -> None:
    assert compiled_by(fresh(root), XOR) == (1, 0)
    assert compiled_by(fresh(root), XOR, MOVE) == (1, 1)


def test_another_interpreter_compiles_nothing(root: Path) -> None:
    code = ("import sys, json; from stuntgpu.emu import cache; from tests.emu.test_cache import XOR, MOVE; "
            "cache.cache().handlers([XOR, MOVE]); "
            "print(json.dumps([cache.counters.compiled, cache.counters.loaded, 'llvmlite' in sys.modules]))")
    here = Path(__file__).resolve().parents[2]
    env = {**os.environ, VARIABLE: str(root)}

    def run() -> object:
        done = subprocess.run([sys.executable, "-c", code], cwd=here, env=env, capture_output=True, check=True, timeout=60)
        return json.loads(done.stdout)

    assert run() == [2, 0, True]
    assert run() == [0, 2, False]


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied"])
def test_a_damaged_bundle_is_compiled_anew(root: Path, damage: str) -> None:
    fresh(root).handlers([XOR])
    path = bundle(root)
    data = bytearray(path.read_bytes())
    if damage == "flipped":
        data[-1] ^= 1
    path.write_bytes({"cut": data[:-9], "flipped": data, "emptied": b""}[damage])
    assert compiled_by(fresh(root), XOR) == (1, 0)
    assert compiled_by(fresh(root), XOR) == (0, 1)


def test_a_bundle_with_its_own_digest_but_another_name_is_refused(root: Path) -> None:
    fresh(root).handlers([XOR])
    bundle(root).write_bytes(pack(Image(b"\xc3", {"h_evil": 0}, {})))
    assert compiled_by(fresh(root), XOR) == (1, 0)


def test_files_and_folders_that_others_can_write_are_not_trusted(root: Path) -> None:
    fresh(root).handlers([XOR])
    bundle(root).chmod(0o666)
    assert compiled_by(fresh(root), XOR) == (1, 0)
    root.chmod(0o777)
    assert Folder.open(root).path is None
    assert compiled_by(fresh(root), XOR) == (1, 0)


def test_links_are_not_followed(root: Path) -> None:
    fresh(root).handlers([XOR])
    path = bundle(root)
    moved = root / "elsewhere"
    path.rename(moved)
    path.symlink_to(moved)
    assert compiled_by(fresh(root), XOR) == (1, 0)


def test_no_usable_folder_means_a_cache_in_memory(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    c = fresh(blocked)
    assert c.folder.path is None
    assert compiled_by(c, XOR) == (1, 0)
    assert compiled_by(c, XOR) == (0, 0)


def test_index_lines_that_are_not_whole_are_ignored(root: Path) -> None:
    fresh(root).handlers([XOR])
    (index,) = root.glob("*/index")
    index.write_bytes(b"\xff\xfe garbage\nonly-one-field\n" + index.read_bytes() + b"cut of")
    assert compiled_by(fresh(root), XOR) == (0, 1)


def test_folder_is_private(root: Path) -> None:
    fresh(root).handlers([XOR])
    assert bundle(root).stat().st_mode & 0o077 == 0
    assert bundle(root).parent.stat().st_mode & 0o077 == 0


def test_environment_names_the_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(root))
    assert caches.cache().folder.path == root / caches.environment_key()
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(root / "xdg"))
    assert caches.default_folder() == root / "xdg" / "stuntgpu"


def test_bundles_round_trip() -> None:
    image = Image(b"\x90\xc3", {"h_a": 0, "h_b": 1}, {"fmaf": 8})
    data = pack(image)
    assert unpack(data) == image
    assert unpack(data[:-1] + b"\x00") is None
    assert unpack(b"") is None


def test_digest_depends_on_form_and_row() -> None:
    assert XOR.digest() != MOVE.digest()
    other = Form(XOR.arch, XOR.name, 64, XOR.mode, XOR.slots, (), "", 0, 0, True, None)
    assert other.digest() != XOR.digest()
    assert Form(XOR.arch, "V_AND_B32", 32, 0, XOR.slots, (), "", 0, 0, True, None).digest() != XOR.digest()
