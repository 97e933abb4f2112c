# SPDX-License-Identifier: Apache-2.0
"""Builds the codec in C: a CPython extension, whose symbols other extensions with NICs (virtual network,
hosts) use.
"""

from __future__ import annotations

import functools
from types import ModuleType

from tailrace.cbuild.artifacts import CODEC
from tailrace.cbuild.extension import extension


@functools.cache
def codec_extension() -> ModuleType:
    """The extension module; its C symbols are exported to extensions that are loaded later.

    Raises:
        BuildError: there is no C compiler, or Python's headers are missing.
    """
    return extension("tailrace_codec", sorted(CODEC.glob("tc_*.c")), (CODEC,), export_symbols=True)
