# SPDX-License-Identifier: Apache-2.0
"""Builds the C part of the virtual network: a CPython extension that uses the switch core and the codec."""

from __future__ import annotations

import functools
from types import ModuleType

from tailrace.cbuild.artifacts import CODEC, RUNTIME, VIRTUAL
from tailrace.cbuild.extension import extension as make
from tailrace.codec.build import codec_extension
from tailrace.switch.core import lib


@functools.cache
def extension() -> ModuleType:
    """The extension module.

    Raises:
        BuildError: there is no C compiler, or Python's headers are missing.
    """
    # the extension needs the symbols of the switch core and the codec when it is loaded
    lib.load()
    codec_extension()
    return make("tailrace_virtual", sorted(VIRTUAL.glob("tv_*.c")), (CODEC, RUNTIME, VIRTUAL))
