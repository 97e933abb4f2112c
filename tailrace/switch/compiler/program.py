# SPDX-License-Identifier: Apache-2.0
"""Compiles BMv2 JSON to a program that switches can load.

A Recipe (cbuild/cc.py) contains all inputs of a compilation; its methods compile if the object is not cached.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import pickle
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tailrace.cbuild.artifacts import RUNTIME
from tailrace.cbuild.cc import Recipe, files_digest
from tailrace.cbuild.errors import BuildError, RefusedSourceError
from tailrace.cbuild.memoized import cached, memoized
from tailrace.switch.compiler.errors import CompilerError, NotCompiledError, located
from tailrace.switch.compiler.model import Model

_MODEL = "model"
"""The kind of cache entries that contain parsed models."""

_MAX_FRAME_BYTES = 1 << 20
"""Largest stack frame of a C function: the stack has 8 MiB, and an overflow crashes at the first packet."""


_codes: dict[Path, ctypes.CDLL] = {}
"""The code of programs by the path of the shared object, which contains a hash of all inputs."""


@dataclass(frozen=True, slots=True)
class SwitchProgram:
    """A compiled program: its model, and the shared object with its code.

    `sha256` is the hash of the program's JSON, `source` the JSON file's name for messages. `recipe` can
    compile the code again.
    """

    model: Model
    library: Path
    sha256: str
    source: str
    recipe: Recipe = field(repr=False, compare=False)

    def tracing_build(self) -> SwitchProgram:
        """The same program with trace hooks, calls that record the steps of the traced packets (tr_tracer.h).

        Raises:
            CompilerError: the program cannot be compiled.
        """
        cache_dir, sanitize = self.recipe.cache_dir, self.recipe.sanitize
        recipe = _recipe(self.sha256, self.model, self.source, cache_dir, sanitize=sanitize, tracing=True)
        try:
            return replace(self, library=recipe.path(), recipe=recipe)
        except BuildError as error:
            raise _not_compiled(self.source, error) from None

    def load(self) -> ctypes.CDLL:
        """The code, loaded into this process once; compiled again if it is no longer in the cache.

        Raises:
            CompilerError: the code could not be compiled or loaded.
        """
        if self.library not in _codes:
            try:
                _codes[self.library] = self.recipe.load()
            except BuildError as error:
                raise _not_compiled(self.source, error) from None
        return _codes[self.library]


def _model(text: bytes, digest: str, source: str, cache_dir: Path | None) -> Model:
    """Parses a program, or loads its model from the cache in a tenth of the time."""
    parsed: list[Model] = []  # filled only if the cache has no model

    def read() -> Model:
        # imported late: a switch with cached programs does not need the reader
        from tailrace.switch.compiler.read.bmv2_json import read_bmv2_json

        return read_bmv2_json(text, source)

    def pickled() -> bytes:
        parsed.append(read())
        return pickle.dumps(parsed[0])

    # models that cannot be pickled, such as those with deeply nested expressions, are not cached
    with suppress(RecursionError, pickle.PickleError):
        # the cached result, else the result of `pickled`, which is then cached
        octets = memoized(_MODEL, _cache_key(digest, source), pickled, cache_dir)
        if not parsed:
            return _unpickled(octets)
    return parsed[0] if parsed else read()


def _cache_key(digest: str, source: str) -> tuple[str, ...]:
    """The cache key of a model; `digest` is the SHA-256 of the program's JSON."""
    return sys.version, source, digest, _source_digests()[0]


def _unpickled(octets: bytes) -> Model:
    # the cache is as trusted as compiled code
    model = pickle.loads(octets)  # noqa: S301
    assert isinstance(model, Model)
    return model


def _source_digests() -> tuple[str, str]:
    """Digests of the compiler's and of the runtime's sources."""
    return files_digest(Path(__file__).parent, "*.py"), files_digest(RUNTIME, "*.[ch]")


def _c_text(model: Model, source: str, tracing: bool) -> list[str]:
    from tailrace.switch.compiler.emit import emit

    try:
        return [emit(model, tracing=tracing)]
    except RecursionError:
        raise CompilerError(located(source, "expressions are nested too deeply")) from None


def _not_compiled(source: str, error: Exception) -> CompilerError:
    """The error for C text that was not compiled: rejected by the C compiler, or no compiler works here."""
    return NotCompiledError(located(source, str(error)), refused=isinstance(error, RefusedSourceError))


def load_program(
    text: bytes,
    *,
    source: str = "<json>",
    cache_dir: Path | None = None,
    sanitize: bool = False,
    options: Sequence[str] = (),
) -> SwitchProgram:
    """Reads and compiles a program; the compiled code comes from the cache if nothing has changed.

    Args:
        text: BMv2 JSON as p4c writes it.
        source: name of the JSON file, for messages.
        cache_dir: folder for compiled code; None: the user's cache folder.
        sanitize: compile with address and undefined-behaviour sanitizers.
        options: further options of the C compiler, such as `-O0`.

    Raises:
        CompilerError: the JSON is invalid or uses an unsupported construct.
        NotCompiledError: the C compiler failed.
    """
    digest = hashlib.sha256(text).hexdigest()
    model = _model(text, digest, source, cache_dir)
    recipe = _recipe(digest, model, source, cache_dir, sanitize=sanitize, options=options)
    try:
        return SwitchProgram(model, recipe.path(), digest, source, recipe)
    except BuildError as error:
        raise _not_compiled(source, error) from None


def known_program(
    text: bytes, *, source: str = "<json>", cache_dir: Path | None = None
) -> SwitchProgram | None:
    """Like `load_program`, but only from the cache; None if the model or the code is not cached."""
    digest = hashlib.sha256(text).hexdigest()
    octets = cached(_MODEL, _cache_key(digest, source), cache_dir)
    if octets is None:
        return None
    model = _unpickled(octets)
    recipe = _recipe(digest, model, source, cache_dir)
    try:
        return SwitchProgram(model, recipe.path(), digest, source, recipe) if recipe.is_made() else None
    except BuildError:
        return None


def _recipe(
    digest: str,
    model: Model,
    source: str,
    cache_dir: Path | None,
    *,
    sanitize: bool = False,
    tracing: bool = False,
    options: Sequence[str] = (),
) -> Recipe:
    return Recipe(
        "tracing" if tracing else "program",
        [digest, *_source_digests()],
        # no lambda: a program may be unpickled from another process, and compiled again here
        functools.partial(_c_text, model, source, tracing),
        sanitize=sanitize,
        cache_dir=cache_dir,
        # hidden symbols: each program contains a separate copy of the data plane
        options=(
            "-fvisibility=hidden",
            f"-Werror=frame-larger-than={_MAX_FRAME_BYTES}",
            # some versions of clang lack the previous option
            "-Wno-unknown-warning-option",
            *(("-DTR_TRACING", "-O1") if tracing else ()),
            *options,
        ),
    )
