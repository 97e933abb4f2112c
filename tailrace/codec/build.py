# SPDX-License-Identifier: Apache-2.0
"""The codec in C: a CPython extension, which others that have NICs at their wires are loaded over."""

from __future__ import annotations

import functools
from types import ModuleType

from tailrace.cbuild.artifacts import CODEC
from tailrace.cbuild.extension import extension


@functools.cache
def codec_extension() -> ModuleType:
    """The extension module, its symbols there for others.

    Raises:
        BuildError: there is no C compiler, or Python's headers are missing.
    """
    return extension("tailrace_codec", sorted(CODEC.glob("tc_*.c")), (CODEC,), export_symbols=True)
