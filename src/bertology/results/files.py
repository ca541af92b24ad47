"""Files of a store, on a local disk or at any fsspec URL; a file is written whole or not at all.

On a local disk a temporary file is written and then moved; object stores write whole objects.
Every failure becomes a StoreError that says what to do.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from bertology.drafts import locked, remove_abandoned
from bertology.errors import StoreError
from bertology.plain_files import local_path

_TEMPORARY = ".tmp"


class FileSystem(Protocol):
    """What a store uses of an fsspec file system."""

    def cat_file(self, path: str) -> bytes: ...
    def pipe_file(self, path: str, value: bytes, mode: str = ...) -> object: ...
    def isfile(self, path: str) -> bool: ...
    def size(self, path: str) -> int | None: ...
    def exists(self, path: str) -> bool: ...
    def ls(self, path: str, detail: bool) -> Iterable[str]: ...
    def rm(self, path: str, recursive: bool) -> object: ...
    def invalidate_cache(self) -> None: ...


def open_files(url: str, options: Mapping[str, object]) -> Files:
    """The files under `url`: a local folder, or any address that fsspec knows (`s3://…`)."""
    from fsspec.core import url_to_fs
    from fsspec.implementations.local import LocalFileSystem

    try:
        place = url if "://" in url else str(local_path(url, error=StoreError))
        system, root = url_to_fs(place, **options)
    except (ImportError, ValueError) as error:
        raise StoreError(
            f"The store {url!r} cannot be opened: {error}.",
            hint="Give a folder, or an fsspec URL whose package is installed "
            "(for s3:// run: pip install s3fs).",
        ) from error
    if isinstance(system, LocalFileSystem):
        return LocalFiles(url, root)
    return Files(url, root, system)


class Files:
    """Files on an fsspec file system, by paths relative to the store's root."""

    def __init__(self, url: str, root: str, system: FileSystem) -> None:
        self.url, self.root, self._system = url, root.rstrip("/"), system

    def read(self, path: str) -> bytes:
        """The bytes of a file; FileNotFoundError where there is none."""
        with self._as_store_error("read", path):
            return self._system.cat_file(self._full(path))

    def write(self, path: str, data: bytes) -> None:
        """Write the whole file; a file that was there is replaced."""
        with self._as_store_error("write", path):
            self._system.pipe_file(self._full(path), data)

    def create(self, path: str, data: bytes) -> bool:
        """Write the file if there is none yet; True if it was written."""
        with self._as_store_error("write", path):
            try:
                self._system.pipe_file(self._full(path), data, mode="create")
            except FileExistsError:
                return False
            return True

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        with self._as_store_error("read", path):
            self._forget()
            return bool(self._system.isfile(self._full(path)))

    def size(self, path: str) -> int:
        """The bytes of a file; 0 where there is none."""
        with self._as_store_error("read", path):
            try:
                return int(self._system.size(self._full(path)) or 0)
            except FileNotFoundError:
                return 0

    def names(self, folder: str = "") -> list[str]:
        """Sorted names of what is in a folder; none where there is no folder."""
        with self._as_store_error("read", folder):
            self._forget()
            try:
                found = self._system.ls(self._full(folder), detail=False)
            except FileNotFoundError:
                return []
            return sorted({str(path).rstrip("/").rpartition("/")[2] for path in found} - {""})

    def remove(self, folder: str) -> None:
        """Remove a file, or a folder and what is in it; nothing happens where there is none."""
        with self._as_store_error("write", folder):
            self._forget()
            if self._system.exists(self._full(folder)):
                self._system.rm(self._full(folder), recursive=True)

    def _full(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root

    def _forget(self) -> None:
        # Another process may have written since the last read.
        self._system.invalidate_cache()

    @contextmanager
    def _as_store_error(self, doing: str, path: str) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except Exception as error:
            if doing == "read" and isinstance(error, FileNotFoundError):
                raise
            # Clients of object stores have their own error classes; users always see a StoreError.
            raise self._failure(doing, path, error) from error

    def _failure(self, doing: str, path: str, error: Exception) -> StoreError:
        where = f"{self.url.rstrip('/')}/{path}".rstrip("/")
        code = getattr(error, "errno", None)
        kept = "What was finished before is kept; the same command goes on from there."
        if code in (errno.ENOSPC, errno.EDQUOT):
            return StoreError(
                f"The disk is full: {where} could not be written.",
                hint=f"Free some space or choose another store with --store. {kept}",
            )
        if isinstance(error, PermissionError) or code in (errno.EACCES, errno.EPERM, errno.EROFS):
            return StoreError(
                f"No permission to {doing} {where}.",
                hint=f"Choose a store you may {doing}, with --store FOLDER. {kept}",
            )
        if isinstance(error, NotADirectoryError | FileExistsError | IsADirectoryError):
            return StoreError(
                f"The store {self.url!r} cannot be used: at {where} there is a file instead of a "
                "folder, or a folder instead of a file.",
                hint="Choose another store with --store FOLDER, or move that file away.",
            )
        return StoreError(
            f"{where} could not be {'read' if doing == 'read' else 'written'}: "
            f"{type(error).__name__}: {error}.",
            hint=kept if doing == "write" else None,
        )


class LocalFiles(Files):
    """Files on a local disk, where moving a file into its place is atomic."""

    def __init__(self, url: str, root: str) -> None:
        self.url, self.root = url, root.rstrip("/")
        self._swept: set[Path] = set()

    def read(self, path: str) -> bytes:
        """Read the whole file."""
        with self._as_store_error("read", path):
            place = Path(self._full(path))
            if place.exists() and not place.is_file():
                raise IsADirectoryError(errno.EISDIR, "not a file", str(place))  # or a pipe
            return place.read_bytes()

    def write(self, path: str, data: bytes) -> None:
        """Write a temporary file in the same folder, then move it into place."""
        with self._as_store_error("write", path), self._temporary_file(path, data) as temporary:
            os.replace(temporary, self._full(path))

    def create(self, path: str, data: bytes) -> bool:
        """Write a temporary file in the same folder, then link it into place."""
        with self._as_store_error("write", path), self._temporary_file(path, data) as temporary:
            try:
                # A link, unlike a move, does not replace what is there.
                os.link(temporary, self._full(path))
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
                    raise
                # A disk without links: look, then move.
                if self.exists(path):
                    return False
                os.replace(temporary, self._full(path))
            return True

    def size(self, path: str) -> int:
        """The bytes of a file; 0 where there is none."""
        with self._as_store_error("read", path):
            try:
                return Path(self._full(path)).stat().st_size
            except FileNotFoundError:
                return 0

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        with self._as_store_error("read", path):
            return Path(self._full(path)).is_file()

    def names(self, folder: str = "") -> list[str]:
        """Sorted names, without files that are being written."""
        with self._as_store_error("read", folder):
            try:
                found = os.listdir(self._full(folder))
            except FileNotFoundError:
                return []
            return sorted(name for name in found if not name.endswith(_TEMPORARY))

    def remove(self, folder: str) -> None:
        """Remove a file, or a folder and what is in it."""
        with self._as_store_error("write", folder):
            try:
                place = Path(self._full(folder))
                if place.is_file():
                    place.unlink(missing_ok=True)
                else:
                    shutil.rmtree(place)
            except OSError as error:
                # Another process may remove it, or add to it, at the same time.
                if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                    raise

    @contextmanager
    def _temporary_file(self, path: str, data: bytes) -> Iterator[str]:
        """A temporary file with `data` in the same folder, removed afterwards in any case."""
        target = Path(self._full(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.parent not in self._swept:
            self._swept.add(target.parent)
            remove_abandoned(target.parent, f".*{_TEMPORARY}")  # of processes that were killed
        temporary = target.with_name(f".{target.name}.{uuid4().hex}{_TEMPORARY}")
        try:
            with open(temporary, "wb") as file, locked(temporary):
                file.write(data)
                file.flush()
                os.fsync(file.fileno())  # otherwise a crash may leave an empty file
                yield str(temporary)
        finally:
            temporary.unlink(missing_ok=True)
