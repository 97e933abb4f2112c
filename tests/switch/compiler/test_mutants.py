# SPDX-License-Identifier: Apache-2.0
"""Programs that p4c would not write are refused in a line, or have C text; `make fuzz` compiles and runs that, too."""

from __future__ import annotations

import random

import pytest

from tests.switch.compiler.mutants import Mutants
from tests.switch.fuzz.builds import PROGRAMS
from tests.switch.fuzz.kinds import compiled_mutant

MANY = 80


@pytest.mark.parametrize("name", ["basic_l3", "header_stacks", "value_sets", "varbit_options"])
def test_mutants_are_refused_in_a_line_or_have_c_text(name: str) -> None:
    mutants, rng = Mutants(PROGRAMS[name].read_bytes()), random.Random(name)
    taken = sum(compiled_mutant(name, *mutants.mutant(rng)) is not None for _ in range(MANY))
    assert 0 < taken < MANY
