# SPDX-License-Identifier: Apache-2.0
"""Tracing builds, loaded in this process: programs compiled with calls that record the steps of packets."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from tailrace.switch.compiler.coverage_points import CoveragePoints
from tailrace.switch.compiler.program import SwitchProgram
from tailrace.switch.core.lib import ffi, load
from tailrace.switch.trace.field_layout import FieldLayout
from tailrace.switch.trace.records import DescribeEntity, RecordReader, no_description

CACHE_SIZE = 16
"""How many tracing builds this process keeps."""


def cached_build(program: SwitchProgram) -> TracingBuild:
    """The tracing build of a program, cached in this process.

    Raises:
        CompilerError: the tracing build cannot be compiled.
    """
    key = (program.library, program.sha256, program.source)
    build = _cache.pop(key, None) or TracingBuild(program)
    _cache[key] = build  # ordered by last use, the oldest first
    while len(_cache) > CACHE_SIZE:
        del _cache[next(iter(_cache))]
    return build


class TracingBuild:
    """A program compiled with calls that record the steps of packets, and the layout of its fields.

    Raises:
        CompilerError: the tracing build cannot be compiled.
    """

    def __init__(self, program: SwitchProgram) -> None:
        self.program = program.tracing_build()
        self._code = self.program.load()
        self.points = CoveragePoints(program.model)
        # the build that switches run; the dynamic loader loads a file only once, so this is the same code
        self._regular_code = program.load()
        self.regular = _symbol(self._regular_code, "tr_program *", "tr_program_entry")
        self.tracing = _symbol(self._code, "tr_program *", "tr_program_entry")
        self._layout = FieldLayout(program.model, _symbol(self._code, "tr_place *", "tr_program_places"))

    def new_tracer(self, size: int) -> Any:
        """A tracer whose buffer has `size` 64-bit fields, freed with its last reference; NULL: no memory."""
        core = load()
        tracer = core.tr_tracer_new(size, len(self.points.all), len(self.program.model.tables))
        return ffi.gc(tracer, core.tr_tracer_free)

    def reader(self, describe: DescribeEntity = no_description) -> RecordReader:
        """A new reader of the program's records."""
        return RecordReader(self.program.model, self._layout, describe)


_cache: dict[tuple[Path, str, str], TracingBuild] = {}


def _symbol(code: ctypes.CDLL, kind: str, name: str) -> object:
    return ffi.cast(kind, ctypes.addressof(ctypes.c_char.in_dll(code, name)))
