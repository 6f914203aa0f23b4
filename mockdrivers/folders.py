"""Private folders of the device server: only the user gets in, and we look before we trust.

Errors:  UnsafeFolder when a folder is someone else's or open to others.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path

PREFIX, LOCK = "s-", "lock"
MAX_SOCKET_PATH = 107  # sun_path of Linux, without the final NUL


class UnsafeFolder(Exception):
    """A folder that another user could have prepared or could look into."""


def runtime_folder() -> Path:
    """`$XDG_RUNTIME_DIR/stuntgpu`, else a folder of this user in the temp folder; made 0700 if absent.

    Raises UnsafeFolder, saying which folder and what to do.
    """
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.path.isdir(base) and os.access(base, os.W_OK):
        folder = Path(base) / "stuntgpu"
    else:
        folder = Path(tempfile.gettempdir()) / f"stuntgpu-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    check_private(folder)
    return folder


def check_private(folder: Path) -> None:
    """Raises UnsafeFolder unless `folder` is a real folder of ours that only we can enter."""
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o077:
        raise UnsafeFolder(f"{folder} must be a folder of user {os.getuid()} with mode 0700, it is "
                           f"{stat.filemode(info.st_mode)} of user {info.st_uid}: remove it or set XDG_RUNTIME_DIR")


def session_folder() -> tuple[Path, int]:
    """A fresh folder for one server and the descriptor of its held lock; left-overs are swept first."""
    parent = runtime_folder()
    for old in parent.glob(PREFIX + "*"):
        _sweep(old)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock


def _sweep(folder: Path) -> None:
    """Remove a dead server's folder: nobody holds its lock."""
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return  # just being made, or just gone
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return
    finally:
        os.close(lock)
