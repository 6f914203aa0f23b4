"""Compiled handlers on disk: content-addressed bundles and an index of forms. A warm process compiles nothing.

Layout under $STUNTGPU_CACHE (default ~/.cache/stuntgpu): `<key>/index` has a line per form, its digest
and the bundle that holds it; `<key>/<sha256>.bin` is a bundle, named by the digest of its content.
`key` stands for everything a handler depends on beside its form: this generator's sources, LLVM, the
processor.

Cached files are native code. The folder must belong to this user and be closed to others; every
bundle's owner and digest are checked before it is mapped. Whatever fails a check is compiled anew.
A folder that cannot be used means a cache in memory.

Units:   counters in functions.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import tempfile
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from stuntgpu.emu.forms import PREFIX, Form, symbol
from stuntgpu.emu.objects import Image, LinkError, Mapping
from stuntgpu.isa.errors import Unmodelled

if TYPE_CHECKING:
    from stuntgpu.emu.lower_text import Host

VARIABLE = "STUNTGPU_CACHE"
_MAGIC = b"SGPUOBJ1"
_MODULE_FUNCTIONS = 96  # compiled together at most

#: Sources whose change makes cached code stale.
_GENERATOR = ("lower*.py", "handler*.py", "forms.py", "layout.py", "objects.py", "codegen.py", "transcend.py",
              "smallfloat.py", "matrix_layout.py")  # fmt: skip


@dataclass
class Counters:
    """Of this process. compiled: functions made by LLVM; loaded: functions found on disk."""

    compiled: int = 0
    loaded: int = 0


counters = Counters()


# ---------------------------------------------------------------- what code depends on


@lru_cache(maxsize=1)
def cpu_flags() -> tuple[str, frozenset[str]]:
    """Model name and feature flags of the processor."""
    model, flags = "", frozenset[str]()
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
        for line in f:
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                model = value.strip()
            elif name.strip() == "flags":
                return model, frozenset(value.split())
    return model, flags


def host() -> Host:
    """What handlers may use of this processor."""
    from stuntgpu.emu.lower_text import Host  # the compiler's side is imported by a cold cache only

    _, flags = cpu_flags()
    return Host(f16c="f16c" in flags)


def _compiler_version() -> bytes:
    """llvmlite's version without importing it."""
    spec = find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return b"none"
    version = Path(spec.origin).with_name("_version.py")
    return version.read_bytes() if version.exists() else spec.origin.encode()


@lru_cache(maxsize=1)
def environment_key() -> str:
    h = hashlib.sha256(_compiler_version())
    here = Path(__file__).parent
    for pattern in _GENERATOR:
        for path in sorted(here.glob(pattern)):
            h.update(path.read_bytes())
    model, flags = cpu_flags()
    h.update(repr((model, sorted(flags))).encode())
    return h.hexdigest()[:24]


# ---------------------------------------------------------------- bundles


def pack(image: Image) -> bytes:
    table = json.dumps({"symbols": image.symbols, "imports": image.imports}).encode()
    body = struct.pack("<I", len(table)) + table + image.code
    return _MAGIC + hashlib.sha256(body).digest() + body


def unpack(data: bytes) -> Image | None:
    """None when the digest does not match the content."""
    body = data[40:]
    if data[:8] != _MAGIC or hashlib.sha256(body).digest() != data[8:40]:
        return None
    (size,) = struct.unpack_from("<I", body)
    table = json.loads(body[4 : 4 + size])
    return Image(body[4 + size :], table["symbols"], table["imports"])


# ---------------------------------------------------------------- the folder


def default_folder() -> Path:
    """$STUNTGPU_CACHE, else stuntgpu under the user's cache folder."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stuntgpu"


def _is_private(info: os.stat_result) -> bool:
    return info.st_uid == os.geteuid() and not info.st_mode & 0o022


@dataclass
class Folder:
    """The cache on disk; `path` None: there is none, everything is forgotten."""

    path: Path | None

    @classmethod
    def open(cls, root: Path) -> Folder:
        """Make the folder, or find it usable; otherwise no folder."""
        path = root / environment_key()
        try:
            root.parent.mkdir(parents=True, exist_ok=True)
            root.mkdir(mode=0o700, exist_ok=True)
            path.mkdir(mode=0o700, exist_ok=True)
            info = path.lstat()
        except OSError:
            return cls(None)
        usable = stat.S_ISDIR(info.st_mode) and _is_private(info) and _is_private(root.stat())
        return cls(path if usable else None)

    def read(self, name: str) -> bytes | None:
        """A file's bytes if it is ours."""
        if self.path is None:
            return None
        try:
            fd = os.open(self.path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        with os.fdopen(fd, "rb") as f:
            info = os.fstat(fd)
            return f.read() if stat.S_ISREG(info.st_mode) and _is_private(info) else None

    def write(self, name: str, data: bytes) -> bool:
        """Atomically; False when the folder cannot be written."""
        if self.path is None:
            return False
        try:
            fd, temporary = tempfile.mkstemp(dir=self.path)
            with os.fdopen(fd, "wb") as f:
                f.write(data)
            os.replace(temporary, self.path / name)
        except OSError:
            return False
        return True

    def append(self, name: str, data: bytes) -> None:
        """One write, so that lines of several processes do not mix."""
        if self.path is None:
            return
        try:
            fd = os.open(self.path / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        with os.fdopen(fd, "wb", buffering=0) as f:
            f.write(data)

    def index(self) -> dict[str, str]:
        """Form digest -> bundle; lines that are not whole are ignored."""
        text = (self.read("index") or b"").decode("ascii", "replace")
        lines = (line.split() for line in text.splitlines())
        return {parts[0]: parts[1] for parts in lines if len(parts) == 2 and len(parts[1]) == 64}


# ---------------------------------------------------------------- the cache


@dataclass
class Cache:
    """Form -> address of its handler, for one process."""

    folder: Folder
    addresses: dict[str, int] = field(default_factory=dict)
    mapped: dict[str, Mapping] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def handlers(self, forms: Iterable[Form]) -> dict[Form, int]:
        """Addresses of the handlers; loads and compiles what is missing. Raises Unmodelled."""
        unique = list(dict.fromkeys(forms))
        with self.lock:
            missing = [f for f in unique if symbol(f) not in self.addresses]
            if missing:
                self._load([f.digest() for f in missing])
            missing = [f for f in missing if symbol(f) not in self.addresses]
            for i in range(0, len(missing), _MODULE_FUNCTIONS):
                self._compile(missing[i : i + _MODULE_FUNCTIONS])
            return {f: self.addresses[symbol(f)] for f in unique}

    def possible_handlers(self, forms: Iterable[Form]) -> dict[Form, str]:
        """Compile or load what there can be a handler of; the others, with the reason."""
        unique = list(dict.fromkeys(forms))
        try:
            self.handlers(unique)
        except Unmodelled:
            refused = _refused(unique)
            self.handlers(f for f in unique if f not in refused)
            return refused
        return {}

    def known(self, names: Sequence[str]) -> bool:
        """Whether handlers of these symbols are here or on disk; they are loaded."""
        with self.lock:
            missing = [n for n in names if n not in self.addresses]
            if missing:
                self._load([n.removeprefix(PREFIX) for n in missing])
            return all(n in self.addresses for n in missing)

    def _load(self, digests: Sequence[str]) -> None:
        index = self.folder.index()
        wanted = dict.fromkeys(index[d] for d in digests if d in index)
        for name in wanted:
            data = None if name in self.mapped else self.folder.read(name + ".bin")
            if data is None or hashlib.sha256(data).hexdigest() != name:
                continue
            image = unpack(data)
            if image is not None:
                self._map(name, image)
                counters.loaded += len(image.symbols)

    def _map(self, name: str, image: Image) -> None:
        try:
            mapping = Mapping(image)
        except LinkError:
            return
        self.mapped[name] = mapping
        self.addresses.update(mapping.addresses)

    def _compile(self, forms: Sequence[Form]) -> None:
        from stuntgpu.emu.codegen import compile_module
        from stuntgpu.emu.handlers import build, module

        machine = host()
        image = compile_module(module(build(f, machine) for f in forms))
        counters.compiled += len(forms)
        data = pack(image)
        name = hashlib.sha256(data).hexdigest()
        self.mapped[name] = Mapping(image)
        self.addresses.update(self.mapped[name].addresses)
        if self.folder.write(name + ".bin", data):
            self.folder.append("index", "".join(f"{f.digest()} {name}\n" for f in forms).encode())


def _refused(forms: Iterable[Form]) -> dict[Form, str]:
    """Forms no handler can be made of, and why."""
    from stuntgpu.emu.handlers import build

    out: dict[Form, str] = {}
    for f in forms:
        try:
            build(f, host())
        except Unmodelled as e:
            out[f] = str(e)
    return out


_caches: dict[Path, Cache] = {}
_caches_lock = threading.Lock()


def cache() -> Cache:
    """The cache of this process for the folder the environment names now."""
    root = default_folder()
    with _caches_lock:
        if root not in _caches:
            _caches[root] = Cache(Folder.open(root))
        return _caches[root]
