# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled things: who may own it, what of it is believed, and one maker a thing.

An entry is a file, or a folder of files, below one folder that nobody else may write. It ends with a seal (an
entry that is a folder holds it in a file of its own): a hash of its name and of all its bytes, so that what
was cut short, damaged or put there under another name is not loaded but made again. Seals keep accidents out;
people are kept out by owner and mode, which are looked at through a descriptor of the folder, and everything
is reached through that descriptor. So the folder that was checked is the one that is used.
"""

from __future__ import annotations

import errno
import fcntl
import os
import pwd
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tailrace.cbuild.errors import BuildError
from tailrace.cbuild.seals import (
    READ,
    SEAL,
    content_of,
    folder_seal,
    is_intact_folder,
    memory_file,
    never_used_path,
    remove_shared_write,
    seal_file,
    trust_problem,
    trusted,
)
from tailrace.spec.text import one_line

VARIABLE = "TAILRACE_CACHE"
SCRATCH = ".build-"
LOCK = ".lock-"
WAIT_S = 900.0
"""How long to wait for another process that makes the same thing; longer than any compiler may run."""

MOST_BYTES = 1 << 30
"""What entries may take together; the ones unused for longest go first."""

MOST_DAYS = 60.0
_DAY_S = 86400.0
_POLL_S = 0.02
_ROOM = 1 << 18
_PATH_CHARS = 180
# what entries are called: anything else in the folder is somebody's own
_ENTRY = re.compile(r"[A-Za-z_]+-[0-9a-f]{32}(-[0-9a-f]{12})?(\.so)?")


def root() -> Path:
    """The folder of the cache: `$TAILRACE_CACHE`, else `tailrace` in the user's cache folder.

    A home or `$XDG_CACHE_HOME` that belongs to another user (as under `sudo -E`) does not count.

    Raises:
        BuildError: there is no such place.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if not named.startswith("/"):
            raise BuildError(f"{VARIABLE} is {named!r}, expected an absolute path")
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if base.startswith("/") and _is_ours(base):
        return Path(base) / "tailrace"
    home = os.environ.get("HOME", "")
    if not (home.startswith("/") and _is_ours(home)):
        try:
            home = pwd.getpwuid(os.geteuid()).pw_dir
        except KeyError:
            raise BuildError(f"no place for compiled code: HOME is not set; set {VARIABLE}") from None
    if not Path(home).is_dir():
        raise BuildError(f"no place for compiled code: the home {home} is no folder; set {VARIABLE}")
    return Path(home) / ".cache" / "tailrace"


def _is_ours(path: str) -> bool:
    """Whether a folder belongs to this user; one that is not there is nobody's and may become ours."""
    try:
        return Path(path).stat().st_uid == os.geteuid()
    except OSError:
        return True


def cache_error(path: Path, error: OSError) -> BuildError:
    """The error of a cache, for people."""
    shown = one_line(str(path), _PATH_CHARS)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return BuildError(f"no space left in {shown}")
    reason = "it is no folder" if error.errno in (errno.ENOTDIR, errno.EEXIST) else error.strerror
    return BuildError(f"cannot write the cache {shown}: {reason} ({VARIABLE} names another folder)")


@dataclass(frozen=True, slots=True)
class Folder:
    """A cache that was found to be this user's alone, or root's, and is held open."""

    path: Path
    fd: int

    def place(self, name: str) -> str:
        """A path to an entry that leads through the descriptor, whatever becomes of the folder's own path."""
        pinned = f"/proc/self/fd/{self.fd}"
        return f"{pinned}/{name}" if os.path.isdir(pinned) else str(self.path / name)  # noqa: PTH112

    def names(self, prefix: str = "", suffix: str = "") -> list[str]:
        entries = os.listdir(self.fd)  # noqa: PTH208 (through the descriptor)
        return sorted(n for n in entries if n.startswith(prefix) and n.endswith(suffix))

    def is_intact(self, name: str) -> bool:
        """Whether an entry is there, is ours or root's, and is what was put there."""
        try:
            fd = os.open(name, READ, dir_fd=self.fd)
        except OSError:
            return False
        try:
            status = os.fstat(fd)
            if not trusted(status):
                return False
            if stat.S_ISDIR(status.st_mode):
                intact = is_intact_folder(fd, name)
            else:
                intact = content_of(fd, name, status) is not None
            if intact and time.time() - status.st_mtime > _DAY_S:
                # what is used stays; once a day is often enough
                with suppress(OSError):
                    os.utime(fd)
            return intact
        except OSError:
            return False
        finally:
            os.close(fd)

    def content(self, name: str) -> bytes | None:
        """The bytes of an entry that is a file, if it is sound; the last 32 tell it from any other."""
        try:
            fd = os.open(name, READ, dir_fd=self.fd)
        except OSError:
            return None
        try:
            status = os.fstat(fd)
            return content_of(fd, name, status) if trusted(status) else None
        except OSError:
            return None
        finally:
            os.close(fd)

    @contextmanager
    def private(self, name: str, content: bytes) -> Iterator[str]:
        """A path to load a library from that nobody can change meanwhile or later: a copy in memory.

        Where there can be no such copy, and for content that is empty, it is the entry itself.
        """
        fd = memory_file(name, content) if content else None
        try:
            yield never_used_path(self.place(name) if fd is None else f"/proc/self/fd/{fd}")
        finally:
            if fd is not None:
                os.close(fd)

    def is_full(self, room: int = _ROOM) -> bool:
        """Whether there is no room for so many bytes, by default for even a small object."""
        try:
            space = os.fstatvfs(self.fd)
        except OSError:
            return False
        return space.f_bavail * space.f_frsize < room or (space.f_files > 0 and space.f_favail == 0)

    def used(self, name: str) -> float:
        """When an entry was last used, as far as that is known."""
        try:
            return os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_mtime
        except OSError:
            return 0.0

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Waits until nobody else makes an entry. The kernel frees the lock of a process that dies.

        Raises:
            BuildError: another process has had it for too long, or the folder cannot be written.
        """
        deadline = time.monotonic() + WAIT_S
        while (fd := self._lock_nowait(name)) is None:
            if time.monotonic() > deadline:
                raise BuildError(f"another process has been making {name} for {WAIT_S:.0f} s")
            time.sleep(_POLL_S)
        try:
            yield
        finally:
            self._unlock(name, fd)

    def _lock_nowait(self, name: str) -> int | None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            fd = os.open(LOCK + name, flags, 0o600, dir_fd=self.fd)
        except OSError as error:
            raise cache_error(self.path, error) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine, there = os.fstat(fd), os.stat(LOCK + name, dir_fd=self.fd, follow_symlinks=False)
            if (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino):
                return fd
        except OSError as error:
            if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
                return fd  # a file system without locks: entries are put in place at once, so nothing breaks
        os.close(fd)
        return None

    def is_locked(self, file: str) -> bool:
        """Whether a process holds the lock of a lock's file."""
        try:
            fd = os.open(file, READ, dir_fd=self.fd)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
        except OSError as error:
            return isinstance(error, BlockingIOError)
        finally:
            os.close(fd)

    @contextmanager
    def scratch(self, name: str) -> Iterator[Path]:
        """A folder to make an entry in, for whoever holds its lock; afterwards it is gone.

        Raises:
            BuildError: there is no room for it.
        """
        self._sweep(name)
        made = f"{SCRATCH}{name}-{os.urandom(6).hex()}"
        try:
            os.mkdir(made, 0o700, dir_fd=self.fd)
            _probe(self.fd, made)
        except OSError as error:
            self._remove(made)
            raise cache_error(self.path, error) from None
        try:
            yield self.path / made
        finally:
            self._remove(made)

    def _sweep(self, locked: str) -> None:
        """Removes what processes that were killed have left: what belongs to a lock that nobody holds."""
        names = self.names()
        left = {name[len(LOCK) :] for name in names if name.startswith(LOCK)}
        left |= {_entry_of(name) for name in names if name.startswith(SCRATCH)}
        for entry in left:
            fd = self._lock_nowait(entry) if entry != locked and _ENTRY.fullmatch(entry) else None
            if fd is not None or entry == locked:
                for name in names:
                    if name.startswith(SCRATCH) and _entry_of(name) == entry:
                        self._remove(name)
            if fd is not None:
                self._unlock(entry, fd)

    def _unlock(self, name: str, fd: int) -> None:
        # gone before it is free, so that whoever waits for this file finds that it counts no more
        with suppress(OSError):
            os.unlink(LOCK + name, dir_fd=self.fd)
        os.close(fd)

    def put(self, name: str, made: Path) -> None:
        """Seals what lies in a scratch folder and makes it an entry, at once, in place of what may be there.

        Raises:
            BuildError: there is no room for it.
        """
        source = str(made.relative_to(self.path))
        here, target = Path(self.place(source)), Path(self.place(name))
        try:
            if here.is_dir():
                (here / SEAL).touch()
                remove_shared_write(here)
                (here / SEAL).write_text(folder_seal(here, name))
            else:
                seal_file(here, name)
            if here.is_dir() or (target.is_dir() and not target.is_symlink()):
                self._remove(name)
            os.replace(source, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except OSError as error:
            raise cache_error(self.path, error) from None
        self._prune(name)

    def _remove(self, name: str) -> None:
        path = Path(self.place(name))
        if path.is_dir() and not path.is_symlink():
            # a folder that is half gone has no sound seal any more, whoever looks meanwhile
            with suppress(OSError):
                (path / SEAL).unlink()
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()

    def _prune(self, kept: str) -> None:
        """Takes out what has not been used for long, or what is too much."""
        total, now = 0, time.time()
        entries = [name for name in self.names() if _ENTRY.fullmatch(name) and name != kept]
        for name in sorted(entries, key=self.used, reverse=True):
            total += _bytes_of(Path(self.place(name)))
            if total > MOST_BYTES or now - self.used(name) > MOST_DAYS * _DAY_S:
                self._remove(name)


def is_making(*objects: str) -> bool:
    """Whether a process of this machine makes one of some objects now.

    Raises:
        BuildError: there is no cache.
    """
    folder = open_folder()
    return any(folder.is_locked(file) for name in objects for file in folder.names(f"{LOCK}{name}-"))


def _entry_of(scratch: str) -> str:
    return scratch[len(SCRATCH) :].rpartition("-")[0]


_open: dict[tuple[int, int], int] = {}


def open_folder(path: Path | None = None) -> Folder:
    """A cache, made (mode 0700) if it is not there.

    Raises:
        BuildError: it cannot be made or read, or others than this user or root could have written it.
    """
    path = root() if path is None else path.absolute()
    try:
        _make(path)
        link = os.lstat(path)
        if stat.S_ISLNK(link.st_mode) and link.st_uid not in (os.geteuid(), 0):
            raise BuildError(
                f"the cache {path} is not trusted: a link of another user (uid {link.st_uid}) leads there"
            )
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise cache_error(path, error) from None
    status = os.fstat(fd)
    problem = trust_problem(status)
    if problem is not None:
        os.close(fd)
        raise BuildError(f"the cache {path} is not trusted: {problem} ({VARIABLE} names another folder)")
    # one descriptor a folder for the life of the process: libraries are loaded by paths through it
    key = (status.st_dev, status.st_ino)
    kept = _open.setdefault(key, fd)
    if kept != fd:
        os.close(fd)
    return Folder(path, kept)


def _make(path: Path) -> None:
    missing = []
    while not path.exists() and not path.is_symlink():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        with suppress(FileExistsError):
            folder.mkdir(0o700)


def _probe(folder: int, name: str) -> None:
    """Finds out at once whether there is room for a small object."""
    fd = os.open(f"{name}/room", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        os.write(fd, bytes(_ROOM))
    finally:
        os.close(fd)
        os.unlink(f"{name}/room", dir_fd=folder)


def _bytes_of(path: Path) -> int:
    paths = [path, *path.rglob("*")] if path.is_dir() and not path.is_symlink() else [path]
    total = 0
    for part in paths:
        with suppress(OSError):
            total += part.lstat().st_size
    return total
