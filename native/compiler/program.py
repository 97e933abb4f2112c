# SPDX-License-Identifier: Apache-2.0
"""From a JSON file's bytes to a program that switches can load."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from native.cc import HEADERS, BuildError, cached, files_digest
from native.compiler.bmv2_json import read_bmv2_json
from native.compiler.emit import emit
from native.compiler.errors import ProgramError
from native.compiler.model import Model


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled program: its model, and the shared object with its code."""

    model: Model
    library: Path
    sha256: str


def load_program(
    text: bytes, *, source: str = "<json>", cache_dir: Path | None = None, sanitize: bool = False
) -> Program:
    """Reads and compiles a program; the code comes from the cache when nothing has changed.

    Args:
        text: BMv2 JSON as p4c writes it.
        source: its file name, for messages.
        cache_dir: where compiled code is kept; None: the user's cache folder.
        sanitize: compile with address and undefined-behaviour sanitizers.

    Raises:
        ProgramError: the JSON is bad or uses something unsupported, or the C compiler failed.
    """
    model = read_bmv2_json(text, source)
    digest = hashlib.sha256(text).hexdigest()
    made_by = files_digest(Path(__file__).parent, "*.py"), files_digest(HEADERS, "*.h")
    try:
        library = cached(
            "program", [digest, *made_by], lambda: [emit(model)], sanitize=sanitize, cache_dir=cache_dir
        )
    except BuildError as e:
        raise ProgramError(f"{source}: {e}") from None
    return Program(model, library, digest)
