"""What is written under another name first, and moved into place when it is whole.

A process that is killed leaves its draft behind. While a draft is being written it is locked, and
the lock goes with the process: so the next one that writes to the same place knows which drafts
nobody works on any more, and removes them.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

if sys.platform != "win32":
    import fcntl

_YOUNG = 5.0  # seconds; a draft that was just made may not be locked yet


@contextmanager
def draft_folder(place: Path) -> Iterator[Path]:
    """A new folder beside `place`; removed at the end, unless it was moved into place."""
    mend(place)
    remove_abandoned(place.parent, f".{place.name}.????????")
    draft = place.with_name(f".{place.name}.{uuid4().hex[:8]}")
    draft.mkdir(parents=True)
    try:
        with locked(draft):
            yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def draft_file(place: Path) -> Iterator[Path]:
    """A file to write, moved to `place` when it is whole; nothing of it stays if it is not.

    A link stays a link. A device or a pipe, such as /dev/null, is written to and never replaced.
    """
    if _is_stream(place):
        yield place
        return
    place = place.resolve()
    remove_abandoned(place.parent, f".{place.name}.????????")
    draft = place.with_name(f".{place.name}.{uuid4().hex[:8]}")
    try:
        draft.touch()
        with locked(draft):
            yield draft
        os.replace(draft, place)
    finally:
        draft.unlink(missing_ok=True)


def write_whole(place: Path, data: str | bytes) -> None:
    """Write a file whole or not at all; a device or a pipe gets it after what is there."""
    raw = data.encode() if isinstance(data, str) else data
    if _is_stream(place):
        with place.open("ab") as file:
            file.write(raw)
        return
    with draft_file(place) as draft:
        draft.write_bytes(raw)


def _is_stream(place: Path) -> bool:
    """Whether it is no regular file: also /dev/stdout, where that leads to one."""
    return Path("/dev") in place.absolute().parents or (
        place.exists() and not place.is_file() and not place.is_dir()
    )


def remove_abandoned(folder: Path, pattern: str) -> None:
    """Remove drafts that no living process has locked, some seconds after they were written."""
    for left in folder.glob(pattern):
        if _is_abandoned(left):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)


def put_in_place(draft: Path, place: Path) -> None:
    """Move a draft folder that is whole to its place; what was there before goes."""
    for weights in draft.rglob("*.safetensors"):
        make_readable(weights)
    if not place.exists():
        os.replace(draft, place)
        return
    old = place.with_name(f"{draft.name}.old")
    os.replace(place, old)
    try:
        os.replace(draft, place)
    except OSError:
        os.replace(old, place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def make_readable(weights: Path) -> None:
    """Whoever may read the folder may read the weights: safetensors writes for the owner alone."""
    readers = weights.parent.stat().st_mode & 0o444
    weights.chmod(weights.stat().st_mode | readers)


def mend(place: Path) -> None:
    """Killed between two moves, what was there before lies beside its place: put it back."""
    for old in place.parent.glob(f".{place.name}.????????.old"):
        if place.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.replace(old, place)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Tell other processes that the file or folder is in use, for as long as this one lives."""
    if sys.platform == "win32":
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # a disk without locks; nothing is ever removed there
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


@contextmanager
def alone_with(path: Path) -> Iterator[None]:
    """Wait until no other process is here with the same file, which is made if need be."""
    if sys.platform == "win32":
        yield
        return
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        with suppress(OSError):  # a disk without locks: then what is made is made twice
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _is_abandoned(path: Path) -> bool:
    if sys.platform == "win32":
        return False
    try:
        if time.time() - path.stat().st_mtime < _YOUNG:
            return False
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
