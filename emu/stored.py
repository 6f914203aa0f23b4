"""Programs on disk: a process that meets code another has run neither decodes nor compiles it.

A file per (first bytes of the code, lanes, float mode), in the folder of the code cache and checked
like its bundles: owner, mode, digest. It says which bytes of code it was made from; other bytes in
memory mean it is not used.

Units:   pc in bytes from the program's entry.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from stuntgpu.emu.allocation import Allocation
from stuntgpu.emu.cache import Folder
from stuntgpu.emu.program import Fetch, Program
from stuntgpu.emu.records import Template

_MAGIC = b"SGPUPRG1"
SIGNATURE_BYTES = 256


@lru_cache(maxsize=1)
def _sources() -> bytes:
    """Sizes and times of everything decoding depends on."""
    package = Path(__file__).parent.parent
    found = [(p.name, s.st_size, s.st_mtime_ns) for p, s in _files(package / "isa", package / "emu")]
    return repr(sorted(found)).encode()


def _files(*folders: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for folder in folders:
        for pattern in ("*.py", "*/*.py"):
            for path in folder.glob(pattern):
                yield path, path.stat()


def name_of(arch: str, lanes: int, mode: int, signature: bytes, allocation: Allocation) -> str:
    """File of a program."""
    key = repr((arch, lanes, mode, allocation)).encode() + signature + _sources()
    return hashlib.sha256(key).hexdigest()[:40] + ".prg"


def save(folder: Folder, name: str, program: Program, template: Template) -> None:
    """Keep a program with the records of one mode."""
    code = b"".join(data for _, data in program.runs)
    table = {
        "mode": template.mode, "names": template.names, "starts": [*template.starts.items()],
        "reasons": [*template.reasons.items()], "n_vgprs": template.n_vgprs, "heads": sorted(program.heads),
        "runs": [(pc, len(data)) for pc, data in program.runs], "code": hashlib.sha256(code).hexdigest(),
        "n_records": len(template.records),
    }  # fmt: skip
    head = json.dumps(table, separators=(",", ":")).encode()
    pool = ctypes.string_at(program.pool.words, 4 * program.pool.used)
    body = struct.pack("<I", len(head)) + head + template.records + pool
    folder.write(name, _MAGIC + hashlib.sha256(body).digest() + body)


def load(folder: Folder, name: str, arch: str, lanes: int, fetch: Fetch) -> tuple[Program, Template] | None:
    """The kept program if it is whole and its code is the code in memory."""
    data = folder.read(name)
    if data is None or data[:8] != _MAGIC or hashlib.sha256(data[40:]).digest() != data[8:40]:
        return None
    (size,) = struct.unpack_from("<I", data, 40)
    table = json.loads(data[44 : 44 + size])
    runs = [(pc, fetch(pc, n)) for pc, n in table["runs"]]
    if hashlib.sha256(b"".join(code for _, code in runs)).hexdigest() != table["code"]:
        return None
    records = data[44 + size :]
    return _program(arch, lanes, table, runs, records[table["n_records"] :]), _template(table, records)


def _program(arch: str, lanes: int, table: dict[str, Any], runs: list[tuple[int, bytes]], pool: bytes) -> Program:
    program = Program(arch, lanes)
    program.heads.update(table["heads"])
    program.runs = runs
    program.pool.preload(pool)
    return program


def _template(table: dict[str, Any], records: bytes) -> Template:
    starts = {int(pc): int(record) for pc, record in table["starts"]}
    reasons = {int(record): str(why) for record, why in table["reasons"]}
    return Template(table["mode"], records[: table["n_records"]], tuple(table["names"]), starts, reasons, table["n_vgprs"])
