# SPDX-License-Identifier: Apache-2.0
"""C libraries as their own headers declare them: no structure, number or signature is written again here."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cffi import FFI


def declared(headers: Sequence[Path], beside: FFI | None = None) -> FFI:
    """All types, numbers and functions of some headers.

    Such a header holds declarations and ``#define NAME NUMBER``, no code and nothing that depends on the
    preprocessor.

    Args:
        headers: in the order in which they include each other.
        beside: the declarations that they go on from.

    Raises:
        cffi.CDefError: a header holds something else.
    """
    ffi = FFI()
    if beside is not None:
        ffi.include(beside)
    for header in headers:
        lines = header.read_text().splitlines()
        # includes and guards; of the preprocessor's lines only numbers have three words
        ffi.cdef("\n".join(line for line in lines if line[:1] != "#" or len(line.split()) > 2))
    return ffi


def bound(library: ctypes.CDLL, ffi: FFI) -> Any:
    """What is declared, as attributes: the functions of a library, and numbers. Calls release the GIL."""
    return ffi.dlopen(ffi.cast("void *", library._handle))


def numbers(ffi: FFI) -> Any:
    """The numbers alone, before there is a library."""
    return ffi.dlopen(None)


def fields(ffi: FFI, structure: Any) -> dict[str, Any]:
    """The members of a structure, given by its address, by name."""
    return {name: getattr(structure, name) for name, _ in ffi.typeof(structure).item.fields}
