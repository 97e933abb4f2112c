# SPDX-License-Identifier: Apache-2.0
"""A build cache. It checks ownership and content, and lets only one process at a time build an entry.

The cache is one folder that no other user may write. An entry is a file, or a folder of files. A file ends
with a hash of the entry's name and content; a folder has such a hash in the file `SEAL`. An entry that is
truncated, damaged or stored under another name is built again. `os.replace` makes an entry visible
only once it is complete.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import pwd
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tailrace.cbuild.errors import BuildError
from tailrace.spec.text import one_line

VARIABLE = "TAILRACE_CACHE"
SEAL = "sealed.txt"
"""Name of the file with the hash, in an entry that is a folder."""

WAIT_S = 900.0
"""Longest wait for another process that builds the same entry; longer than a compiler may run."""

MOST_BYTES = 1 << 30
"""Limit of the size of all entries together; the least recently used are deleted first."""

MOST_DAYS = 60.0
_DAY_S = 86400.0
_POLL_S = 0.02
_PATH_CHARS = 180
_HASH_BYTES = hashlib.sha256().digest_size
_BUILD = ".building-"
"""Prefix of the folder in which an entry is built; it contains a lock and a scratch folder."""

_LOCK = "lock"
# files of other names do not belong to the cache and are never deleted
_ENTRY = re.compile(r"[A-Za-z_]+-[0-9a-f]{32}(-[0-9a-f]{12})?(\.so)?")


def root() -> Path:
    """The folder of the cache: `$TAILRACE_CACHE`, else `tailrace` in the user's cache folder.

    A home folder or `$XDG_CACHE_HOME` that belongs to another user (as under `sudo -E`) is ignored.

    Raises:
        BuildError: the variable is invalid, or there is no home folder.
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
    """Whether a folder belongs to this user, or does not exist yet."""
    try:
        return Path(path).stat().st_uid == os.geteuid()
    except OSError:
        return True


def cache_error(path: Path, error: OSError) -> BuildError:
    """Converts an OSError of the cache to a message for the operator."""
    shown = one_line(str(path), _PATH_CHARS)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return BuildError(f"no space left in {shown}")
    reason = "it is no folder" if error.errno in (errno.ENOTDIR, errno.EEXIST) else error.strerror
    return BuildError(f"cannot write the cache {shown}: {reason} (set {VARIABLE} to use another folder)")


def open_folder(path: Path | None = None) -> Folder:
    """Opens a cache; creates its folder (mode 0700) if it does not exist.

    Args:
        path: the folder; None: `root()`.

    Raises:
        BuildError: it cannot be created or read, or users other than this one and root can write it.
    """
    path = root() if path is None else path.absolute()
    try:
        if not path.is_dir():
            for folder in reversed((path, *path.parents)):
                folder.mkdir(0o700, exist_ok=True)
        link, status = path.lstat(), path.stat()
    except OSError as error:
        raise cache_error(path, error) from None
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in (os.geteuid(), 0):
        raise BuildError(
            f"the cache {path} is not trusted: a link of another user (uid {link.st_uid}) leads there"
        )
    problem = _trust_problem(status)
    if problem is not None:
        raise BuildError(f"the cache {path} is not trusted: {problem} (set {VARIABLE} to use another folder)")
    return Folder(path)


def _trust_problem(status: os.stat_result) -> str | None:
    """Why a user other than this one and root may have written a file or folder; None: no other user can."""
    if status.st_uid not in (os.geteuid(), 0):
        return f"it belongs to another user (uid {status.st_uid})"
    if not stat.S_ISLNK(status.st_mode) and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others can write there (mode {stat.S_IMODE(status.st_mode):04o}; chmod go-w it)"
    return None


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of a cache; only this user and root can write it."""

    path: Path

    def content(self, name: str) -> bytes | None:
        """The content of an entry that is a file; None: it does not exist, or is not what was stored."""
        path = self.path / name
        try:
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode) or _trust_problem(status) is not None:
                return None
            stored = path.read_bytes()
        except OSError:
            return None
        content = stored[:-_HASH_BYTES]
        if stored[-_HASH_BYTES:] != _file_hash(name, content):
            return None
        _mark_used(path, status)
        return content

    def is_intact(self, name: str) -> bool:
        """Whether an entry (a file or a folder) exists and is what was stored."""
        path = self.path / name
        try:
            status = path.lstat()
            if not stat.S_ISDIR(status.st_mode):
                return self.content(name) is not None
            if (path / SEAL).read_text() != _folder_hash(name, path):
                return False
        except (OSError, ValueError):
            return False
        _mark_used(path, status)
        return True

    @contextmanager
    def builder(self, name: str) -> Iterator[Path]:
        """Locks an entry for building, for a `with` block; waits while another process builds it.

        Yields a scratch folder to build the entry in, which is removed afterwards.

        Raises:
            BuildError: another process takes too long, or the folder cannot be written.
        """
        folder = self.path / f"{_BUILD}{name}"
        lock = self._lock(name, folder)
        try:
            try:
                scratch = tempfile.mkdtemp(dir=folder)
            except OSError as error:
                raise cache_error(self.path, error) from None
            yield Path(scratch)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)

    def _lock(self, name: str, folder: Path) -> int:
        deadline = time.monotonic() + WAIT_S
        try:
            self._remove_abandoned()
            folder.mkdir(0o700, exist_ok=True)
            while (lock := _lock_at_once(folder)) is None:
                if time.monotonic() > deadline:
                    raise BuildError(f"another process has been making {name} for {WAIT_S:.0f} s")
                time.sleep(_POLL_S)
                folder.mkdir(0o700, exist_ok=True)
        except OSError as error:
            # the folder is empty if the disk was too full for the lock file
            with suppress(OSError):
                folder.rmdir()
            raise cache_error(self.path, error) from None
        return lock

    def _remove_abandoned(self) -> None:
        """Removes the build folders of killed processes, whose locks the kernel has released."""
        for folder in self.path.glob(f"{_BUILD}*"):
            lock = _lock_at_once(folder)
            if lock is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)

    def is_being_built(self, name: str) -> bool:
        """Whether a process builds an entry whose name begins with `name` and a hyphen.

        Raises:
            BuildError: the folder cannot be written.
        """
        for folder in self.path.glob(f"{_BUILD}{name}-*"):
            try:
                lock = _lock_at_once(folder)
            except OSError as error:
                raise cache_error(self.path, error) from None
            if lock is None:
                return True
            os.close(lock)
        return False

    def put(self, name: str, made: Path) -> None:
        """Stores `made`, a file or folder in the scratch folder, as an entry; replaces an existing one.

        Raises:
            BuildError: the cache cannot be written, for example because the disk is full.
        """
        target = self.path / name
        try:
            if made.is_dir():
                _seal_folder(name, made)
            else:
                with os.fdopen(os.open(made, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC), "r+b") as file:
                    file.write(_file_hash(name, file.read()))
                    os.fchmod(file.fileno(), 0o644)
            if made.is_dir() or target.is_dir():
                _remove(target)
            made.replace(target)
        except OSError as error:
            raise cache_error(self.path, error) from None
        self._prune(name)

    def is_full(self, needed_bytes: int) -> bool:
        """Whether the disk has less than `needed_bytes` free, or no inode for another file."""
        try:
            space = os.statvfs(self.path)
        except OSError:
            return False
        free_bytes = space.f_bavail * space.f_frsize
        return free_bytes < needed_bytes or (space.f_files > 0 and space.f_favail == 0)

    def _prune(self, new: str) -> None:
        """Deletes entries unused for `MOST_DAYS`, and the least recently used above `MOST_BYTES`."""
        total, now = 0, time.time()
        entries = [path for path in self.path.iterdir() if _ENTRY.fullmatch(path.name) and path.name != new]
        for path in sorted(entries, key=last_used_s, reverse=True):
            total += _bytes_of(path)
            if total > MOST_BYTES or now - last_used_s(path) > MOST_DAYS * _DAY_S:
                _remove(path)


def last_used_s(path: Path) -> float:
    """When an entry was last used, in s as `time.time`; accurate to a day."""
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def _mark_used(path: Path, status: os.stat_result) -> None:
    if time.time() - status.st_mtime > _DAY_S:
        with suppress(OSError):
            os.utime(path)


def _lock_at_once(folder: Path) -> int | None:
    """Tries to lock a build folder: the descriptor that has the lock; None: another process has it.

    The kernel releases the lock of a process that dies.

    Raises:
        OSError: the folder cannot be written, or its file system does not support locks.
    """
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:  # its builder has just removed the folder
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # the last builder may have removed this lock file, and another builder may have created a new one
        if os.path.samestat(os.fstat(lock), (folder / _LOCK).stat()):
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:
        os.close(lock)
        raise
    os.close(lock)
    return None


def _file_hash(name: str, content: bytes) -> bytes:
    h = hashlib.sha256(name.encode() + b"\0")
    h.update(content)
    return h.digest()


def _folder_hash(name: str, folder: Path) -> str:
    """A hash of a folder: of the name and content of each file, and the name and target of each link.

    Raises:
        OSError: a file cannot be read, or other users can write it.
    """
    h = hashlib.sha256(name.encode() + b"\0")
    for path in (folder, *sorted(folder.rglob("*"))):
        inside, status = path.relative_to(folder).as_posix(), path.lstat()
        if _trust_problem(status) is not None:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(path))
        if stat.S_ISLNK(status.st_mode):
            h.update(f"link {inside}\0{path.readlink()}\0".encode())
        elif stat.S_ISREG(status.st_mode) and inside != SEAL:
            h.update(f"file {inside}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
    return h.hexdigest() + "\n"


def _seal_folder(name: str, folder: Path) -> None:
    (folder / SEAL).touch()
    for path in (folder, *folder.rglob("*")):
        # with umask 002, Ubuntu's default, the group may write: `_trust_problem` would reject that
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~(stat.S_IWGRP | stat.S_IWOTH))
    (folder / SEAL).write_text(_folder_hash(name, folder))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        # the hash is deleted first, so that a partly removed folder is not taken for intact
        (path / SEAL).unlink(missing_ok=True)
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _bytes_of(path: Path) -> int:
    paths = [path, *path.rglob("*")] if path.is_dir() and not path.is_symlink() else [path]
    total = 0
    for part in paths:
        with suppress(OSError):
            total += part.lstat().st_size
    return total
