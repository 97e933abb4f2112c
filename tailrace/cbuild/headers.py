# SPDX-License-Identifier: Apache-2.0
"""Bindings of C libraries, made from their headers, so that Python code repeats no structure or signature."""

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

_sources: dict[FFI, tuple[str, ...]] = {}
"""The C declarations from which each FFI was made; those of the FFI that it extends come first."""


def declared(headers: Sequence[Path], base: FFI | None = None) -> FFI:
    """The cffi FFI with all types, constants and functions of some headers.

    Such a header may have only declarations and ``#define NAME NUMBER``: no code, and nothing else that needs
    the preprocessor. It is parsed once; afterwards the build cache has the Python code that cffi makes of it.

    Args:
        headers: in the order in which they include each other.
        base: the FFI of the headers that these include, if those were declared separately.

    Raises:
        cffi.CDefError: a header has something else.
    """
    before = () if base is None else _sources[base]
    sources = (*before, "\n".join(_declarations(header) for header in headers))
    code = memoized("declared", (_cffi_backend.__version__, *sources), lambda: _parsed(sources).encode())
    names: dict[str, Any] = {"_ffi0": base}
    exec(code, names)  # noqa: S102 - made by cffi; the cache is trusted as for compiled code
    made: FFI = names["ffi"]
    _sources[made] = sources
    return made


def _declarations(header: Path) -> str:
    lines = header.read_text().splitlines()
    # drops includes and include guards: of the lines that begin with # only constants have three fields
    return "\n".join(line for line in lines if line[:1] != "#" or len(line.split()) > 2)


def _parsed(sources: Sequence[str]) -> str:
    """The Python code that makes the FFI of the last source; each source extends the one before it."""
    from cffi import FFI
    from cffi.recompiler import make_py_source  # type: ignore[import-untyped]

    made: list[FFI] = []
    for source in sources:
        ffi = FFI()
        if made:
            ffi.include(made[-1])
        ffi.cdef(source)
        ffi.set_source(f"declared{len(made)}", None)
        made.append(ffi)
    code = io.StringIO()
    make_py_source(made[-1], f"declared{len(made) - 1}", code)
    # cffi's code imports the FFI that it extends from a module; `declared` passes it as `_ffi0` instead
    return "\n".join(line for line in code.getvalue().splitlines() if not line.startswith("from declared"))


def bound(library: ctypes.CDLL, ffi: FFI) -> Any:
    """The library's functions and the headers' constants, as attributes. Calls release the GIL."""
    return ffi.dlopen(ffi.cast("void *", library._handle))


def numbers(ffi: FFI) -> Any:
    """The headers' constants as attributes, without a library."""
    return ffi.dlopen(None)


def fields(ffi: FFI, structure: Any) -> dict[str, Any]:
    """The values of a structure's members by name; `structure` is a pointer to it."""
    return {name: getattr(structure, name) for name, _ in ffi.typeof(structure).item.fields}
