# SPDX-License-Identifier: Apache-2.0
"""Whether a file or folder is what was put there, by whom it could be otherwise, and copies to load from."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import stat
from pathlib import Path

SEAL = "sealed.txt"
"""The file of an entry that is a folder which holds its seal."""

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAGIC = b"\0tailrace sealed"
FOOTER = len(_MAGIC) + 32
"""Bytes of the seal at the end of an entry that is a file."""

_MOST_FILE = 1 << 30
_UNTRUSTED_WRITE = stat.S_IWGRP | stat.S_IWOTH


def trust_problem(status: os.stat_result) -> str | None:
    """Why others than this user and root may have written a file or folder; None: they have not."""
    if status.st_uid not in (os.geteuid(), 0):
        return f"it belongs to another user (uid {status.st_uid})"
    if status.st_mode & _UNTRUSTED_WRITE:
        return f"others can write there (mode {stat.S_IMODE(status.st_mode):04o}; chmod go-w it)"
    return None


def trusted(status: os.stat_result) -> bool:
    """Whether it is a file or folder that only this user and root may have written."""
    return trust_problem(status) is None and (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode))


def _hash_of(name: str) -> hashlib._Hash:
    return hashlib.sha256(_MAGIC + name.encode() + b"\0")


def seal_file(path: Path, name: str) -> None:
    """Appends the seal, and sees to it that the bytes are on the disk before the name is."""
    h = _hash_of(name)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC), "r+b") as file:
        while block := file.read(1 << 20):
            h.update(block)
        file.write(_MAGIC + h.digest())
        file.flush()
        os.fchmod(file.fileno(), 0o644)
        os.fsync(file.fileno())


def content_of(fd: int, name: str, status: os.stat_result) -> bytes | None:
    """A sealed file's bytes, the seal included; None when they are not what was sealed."""
    if not stat.S_ISREG(status.st_mode) or not FOOTER < status.st_size <= _MOST_FILE:
        return None
    with os.fdopen(os.dup(fd), "rb") as file:
        content = file.read(status.st_size)
    h = _hash_of(name)
    h.update(memoryview(content)[:-FOOTER])
    return content if content.endswith(_MAGIC + h.digest()) else None


def remove_shared_write(folder: Path) -> None:
    """Take from group and others the right to write, which Ubuntu's umask gives to all that a user makes.

    Raises:
        OSError: it cannot be done.
    """
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~(stat.S_IWGRP | stat.S_IWOTH))


def folder_seal(folder: Path, name: str) -> str:
    """Every file by name and content, every link by where it leads; trust is looked at on the way.

    Raises:
        OSError: something cannot be read, or is not ours.
    """
    h = _hash_of(name)
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).as_posix()
        status = path.lstat()
        if inside == SEAL or (stat.S_ISDIR(status.st_mode) and trusted(status)):
            continue
        if stat.S_ISLNK(status.st_mode) and status.st_uid in (os.geteuid(), 0):
            h.update(f"link {inside}\0{path.readlink()}\0".encode())
        elif trusted(status) and status.st_size <= _MOST_FILE:
            h.update(f"file {inside}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
        else:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(path))
    return h.hexdigest() + "\n"


def is_intact_folder(fd: int, name: str) -> bool:
    """Whether a folder holds what was sealed, and nothing else.

    Raises:
        OSError: something cannot be read, or is not ours.
    """
    place = Path(f"/proc/self/fd/{fd}")
    seal = os.open(SEAL, READ, dir_fd=fd)
    with os.fdopen(seal, "r") as file:
        if not trusted(os.fstat(seal)):
            return False
        return file.read(128) == folder_seal(place, name)


def memory_file(name: str, content: bytes) -> int | None:
    """A descriptor of a copy that can be loaded; None where there is no such thing."""
    if not os.path.isdir("/proc/self/fd"):  # noqa: PTH112
        return None
    # 0x10: MFD_EXEC, which kernels before 6.3 do not know
    for flags in (os.MFD_CLOEXEC | 0x10, os.MFD_CLOEXEC):
        try:
            fd = os.memfd_create(name[:200], flags)
        except OSError:
            continue
        try:
            with os.fdopen(os.dup(fd), "wb") as file:
                file.write(content)
        except OSError:
            os.close(fd)
            return None
        return fd
    return None


_paths = itertools.count(1)


def never_used_path(path: str) -> str:
    """Another way to write an absolute path: the loader knows libraries by path, and paths come again."""
    return "".join("/." if bit == "1" else "/" for bit in f"{next(_paths):b}") + path
