# SPDX-License-Identifier: Apache-2.0
"""Programs in every form that simple_switch takes have the same meaning here."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tailrace.switch.compiler.model import Model
from tailrace.switch.compiler.read.bmv2_json import read_bmv2_json
from tests.long import times
from tests.switch.old_forms import REWRITES, Json

ROOT = Path(__file__).parents[3]
PROGRAMS = sorted((ROOT / "tests/programs/build").glob("*.json")) + sorted(
    (ROOT / "p4src/build").glob("*.json")
)

Rewrite = Callable[[Json], None]


def meaning(program: bytes) -> Model:
    """All of a program but what the first versions lack and BMv2 has no use for."""
    model = read_bmv2_json(program)
    return replace(model, profiles=tuple(replace(profile, max_size=0) for profile in model.profiles))


@functools.cache
def meaning_of(path: Path) -> Model:
    """That of a program as it is."""
    return meaning(path.read_bytes())


def rewritten(path: Path, *rewrites: Rewrite) -> Json:
    """A program after these rewrites."""
    program: Json = json.loads(path.read_bytes())
    for rewrite in rewrites:
        rewrite(program)
    return program


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_all_old_forms_at_once(path: Path) -> None:
    """What p4c-bm or the first p4c would have written is read into the very same model."""
    old = rewritten(path, *REWRITES)
    assert old != rewritten(path)
    assert meaning(json.dumps(old).encode()) == meaning_of(path)


@settings(max_examples=times(60, 3))
@given(st.sampled_from(PROGRAMS), st.sets(st.sampled_from(range(len(REWRITES)))))
def test_any_of_the_old_forms(path: Path, chosen: set[int]) -> None:
    """Each form stands on its own: a program may have some of them and not the others."""
    old = rewritten(path, *(REWRITES[number] for number in sorted(chosen)))
    assert meaning(json.dumps(old).encode()) == meaning_of(path)


@pytest.mark.parametrize("rewrite", REWRITES, ids=lambda r: r.__name__)
def test_each_rewrite_does_something(rewrite: Rewrite) -> None:
    """To some program: a rewrite that changed nothing would test nothing."""
    assert any(rewritten(path, rewrite) != rewritten(path) for path in PROGRAMS)
