# SPDX-License-Identifier: Apache-2.0
"""C libraries as their own headers declare them: no structure, number or signature is written again here."""

from __future__ import annotations

import ctypes
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import _cffi_backend  # type: ignore[import-untyped]

from tailrace.cbuild.memoized import memoized

if TYPE_CHECKING:
    from cffi import FFI

_texts: dict[FFI, tuple[str, ...]] = {}
"""What each was made of, those that it goes on from first."""


def declared(headers: Sequence[Path], beside: FFI | None = None) -> FFI:
    """All types, numbers and functions of some headers.

    Such a header holds declarations and ``#define NAME NUMBER``, no code and nothing that depends on the
    preprocessor. They are parsed once; afterwards the cache has what cffi makes of them.

    Args:
        headers: in the order in which they include each other.
        beside: the declarations that they go on from, from here, too.

    Raises:
        cffi.CDefError: a header holds something else.
    """
    before = () if beside is None else _texts[beside]
    texts = (*before, "\n".join(_declarations(header) for header in headers))
    code = memoized("declared", (_cffi_backend.__version__, *texts), lambda: _parsed(texts).encode())
    names: dict[str, Any] = {"_ffi0": beside}
    exec(code, names)  # noqa: S102 - cffi's own text, of a cache that is believed as compiled code is
    made: FFI = names["ffi"]
    _texts[made] = texts
    return made


def _declarations(header: Path) -> str:
    lines = header.read_text().splitlines()
    # includes and guards; of the preprocessor's lines only numbers have three fields
    return "\n".join(line for line in lines if line[:1] != "#" or len(line.split()) > 2)


def _parsed(texts: Sequence[str]) -> str:
    """The Python text that makes the last of some declarations, each of which goes on from the one before."""
    from cffi import FFI
    from cffi.recompiler import make_py_source  # type: ignore[import-untyped]

    made: list[FFI] = []
    for text in texts:
        ffi = FFI()
        if made:
            ffi.include(made[-1])
        ffi.cdef(text)
        ffi.set_source(f"declared{len(made)}", None)
        made.append(ffi)
    code = io.StringIO()
    make_py_source(made[-1], f"declared{len(made) - 1}", code)
    # what it goes on from is given, and no module
    return "\n".join(line for line in code.getvalue().splitlines() if not line.startswith("from declared"))


def bound(library: ctypes.CDLL, ffi: FFI) -> Any:
    """What is declared, as attributes: the functions of a library, and numbers. Calls release the GIL."""
    return ffi.dlopen(ffi.cast("void *", library._handle))


def numbers(ffi: FFI) -> Any:
    """The numbers alone, before there is a library."""
    return ffi.dlopen(None)


def fields(ffi: FFI, structure: Any) -> dict[str, Any]:
    """The members of a structure, given by its address, by name."""
    return {name: getattr(structure, name) for name, _ in ffi.typeof(structure).item.fields}
