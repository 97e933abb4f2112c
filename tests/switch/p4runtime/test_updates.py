# SPDX-License-Identifier: Apache-2.0
"""Updates right and wrong against an oracle; `make fuzz` does the same for longer, and through gRPC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tailrace.switch.p4runtime import context
from tailrace.switch.p4runtime.entities import digests, externs, match, profiles, tables
from tailrace.switch.p4runtime.state import ForwardingState
from tests.switch.fuzz.builds import PROGRAMS
from tests.switch.fuzz.kinds import pipeline
from tests.switch.p4runtime.fuzzed import Fuzzed, InProcess, facts_of
from tests.switch.p4runtime.mutations import MUTATIONS

SOME = (
    "p4rt_all",
    "action_profiles",
    "match_kinds",
    "meters",
    "value_sets",
    "const_entries",
    "flowcut",
    "spritz",
)
Broken = Callable[[pytest.MonkeyPatch], None]


def fuzzed(name: str, seed: int, updates: int) -> Fuzzed:
    program, schema = pipeline(name)
    target = InProcess(program, schema)
    try:
        fuzzer = Fuzzed(target, facts_of(schema), seed)
        fuzzer.run(updates)
    finally:
        target.close()
    return fuzzer


@pytest.mark.parametrize("name", SOME)
def test_each_update_is_refused_or_read_back(name: str) -> None:
    """And what is refused changes nothing, alone or in a batch that is taken back."""
    assert name in PROGRAMS
    fuzzer = fuzzed(name, seed=1, updates=2000)
    assert 0.3 < fuzzer.accepted / fuzzer.updates < 0.95


def test_all_mutations_are_used() -> None:
    programs = ("p4rt_all", "counters", "action_profiles", "match_kinds")
    used = {mutation for name in programs for mutation in fuzzed(name, seed=2, updates=2500).mutations}
    assert used == {*MUTATIONS, ""}


def replaced(owner: Any, name: str, by: Any) -> Broken:
    return lambda patch: patch.setattr(owner, name, by)


def keeps_what_it_takes_back(patch: pytest.MonkeyPatch) -> None:
    def write_all_or_none(self: ForwardingState, updates: Any, results: Any) -> Any:
        yield from self.write(updates, results)

    patch.setattr(ForwardingState, "write_all_or_none", write_all_or_none)


def takes_a_member_in_use(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(profiles.ProfileState, "use", lambda self, target: setattr(target, "handle", 0))
    patch.setattr(profiles.ProfileState, "release", lambda self, target: None)


BROKEN: dict[str, Broken] = {
    "priorities are not looked at": replaced(
        tables.TableState, "_check_priority", lambda self, priority: None
    ),
    "prefixes may have bits behind them": replaced(
        match,
        "_lpm",
        lambda field, given: (
            given.lpm.prefix_len,
            field.pack(given.lpm.value),
            field.prefix_mask(max(0, min(given.lpm.prefix_len, field.bits))),
        ),
    ),
    "masks may be zero": replaced(
        match,
        "_ternary",
        lambda field, given: (field.pack(given.ternary.value), field.pack(given.ternary.mask)),
    ),
    "values are read back as they were written": replaced(context, "shortest", lambda data: data),
    "weights may be anything": replaced(
        profiles.ProfileState,
        "_weighted",
        lambda self, item: profiles.WeightedMember(max(item.weight, 0), self._watch(item)),
    ),
    "members in use can go": takes_a_member_in_use,
    "a batch is not taken back": keeps_what_it_takes_back,
    "counters may be negative": replaced(externs, "check_counter", lambda data, what: None),
    "default entries keep what they had": replaced(
        tables.TableState,
        "initial_default",
        lambda self: (
            getattr(self, "default", None) or tables.StoredEntry(match.PackedKey(b"", b"", 0), 0, None, -1)
        ),
    ),
    "a digest is enabled twice": replaced(digests.Digests, "write", lambda self, kind, message, undo: None),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_server_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle sees what it is there for."""
    BROKEN[fault](monkeypatch)
    with pytest.raises((AssertionError, OverflowError, KeyError)):
        for seed in range(1, 6):
            fuzzed("p4rt_all", seed, updates=2000)
