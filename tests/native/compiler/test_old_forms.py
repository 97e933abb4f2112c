# SPDX-License-Identifier: Apache-2.0
"""Programs in every form that simple_switch takes have the same meaning here."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.native.compiler.model import Model
from tailrace.native.compiler.read.bmv2_json import read_bmv2_json
from tests.native.old_forms import REWRITES, Json

ROOT = Path(__file__).parents[3]
PROGRAMS = sorted((ROOT / "tests/programs/build").glob("*.json")) + sorted(
    (ROOT / "p4src/build").glob("*.json")
)


def meaning(program: Json) -> Model:
    """All of a program but what the first versions lack and BMv2 has no use for."""
    model = read_bmv2_json(json.dumps(program).encode())
    return replace(
        model,
        profiles=tuple(replace(profile, max_size=0) for profile in model.profiles),
        counters=tuple(replace(counter, table=None) for counter in model.counters),
        meters=tuple(replace(meter, table=None) for meter in model.meters),
    )


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_all_old_forms_at_once(path: Path) -> None:
    """What p4c-bm or the first p4c would have written is read into the very same model."""
    new = json.loads(path.read_text())
    old = copy.deepcopy(new)
    for rewrite in REWRITES:
        rewrite(old)
    assert old != new
    assert meaning(old) == meaning(new)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(PROGRAMS), st.sets(st.sampled_from(range(len(REWRITES)))))
def test_any_of_the_old_forms(path: Path, chosen: set[int]) -> None:
    """Each form stands on its own: a program may have some of them and not the others."""
    new = json.loads(path.read_text())
    old = copy.deepcopy(new)
    for number in sorted(chosen):
        REWRITES[number](old)
    assert meaning(old) == meaning(new)


@pytest.mark.parametrize("rewrite", REWRITES, ids=lambda r: r.__name__)
def test_each_rewrite_does_something(rewrite: object) -> None:
    """Over all programs: a rewrite that changed nothing would test nothing."""
    assert callable(rewrite)
    changed = 0
    for path in PROGRAMS:
        new = json.loads(path.read_text())
        old = copy.deepcopy(new)
        rewrite(old)
        changed += old != new
    assert changed
