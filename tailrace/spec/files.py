# SPDX-License-Identifier: Apache-2.0
"""Reads files that a user names: only regular files of bounded size, so that nothing blocks."""

from __future__ import annotations

import codecs
import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

from tailrace.spec.errors import FileError

MOST_BYTES = 256 << 20
"""Limit of a file of results or of a workload."""

MOST_TEXT_BYTES = 64 << 20
"""Limit of a file that people write, such as an experiment or a topology."""


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a regular file.

    Raises:
        OSError: the file cannot be read, is a folder, a pipe or a device, or is larger than `most` bytes;
            `strerror` says which.
    """
    name = str(path)
    try:
        # O_NONBLOCK: opening a pipe without a writer must not block
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:
        raise OSError(errno.EINVAL, "no name that a file can have", name) from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        raise OSError(errno.EINVAL, "no regular file", name)
    with os.fdopen(descriptor, "rb") as file:
        # reads one byte more than allowed, because the kernel may report wrong file sizes (/proc)
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MiB", name)
    return data


_OTHER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
"""Byte order marks of other encodings. UTF-32 comes first: its mark begins with the mark of UTF-16."""


def without_bom(data: bytes) -> bytes:
    """UTF-8 text without the byte order mark with which some editors and spreadsheets begin a file.

    Raises:
        UnicodeDecodeError: the file begins with the mark of another encoding, which `reason` names.
    """
    for mark, name in _OTHER_MARKS.items():
        if data.startswith(mark):
            raise UnicodeDecodeError("utf-8", data[:4], 0, len(mark), f"not UTF-8 text but {name}")
    return data.removeprefix(codecs.BOM_UTF8)


def bytes_of(path: Path, most: int = MOST_BYTES) -> bytes:
    """The same as read_bytes, but raises FileError."""
    try:
        return read_bytes(path, most)
    except OSError as error:
        raise FileError(path, "", error.strerror or str(error)) from error


def text_of(path: Path, most: int = MOST_TEXT_BYTES) -> str:
    """The UTF-8 text of a regular file, with unchanged line ends, without a byte order mark.

    Raises:
        FileError: the file cannot be read (see read_bytes), or is not UTF-8.
    """
    try:
        return without_bom(bytes_of(path, most)).decode()
    except UnicodeDecodeError as error:
        problem = error.reason if error.reason.startswith("not UTF-8") else "not UTF-8 text"
        raise FileError(path, "", problem) from error


def json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object as a dict; to be used as an `object_pairs_hook`.

    Raises:
        ValueError: a key occurs twice, so that one of its values would be lost.
    """
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {json.dumps(key[:64])} occurs twice in an object")
            seen.add(key)
    return result
