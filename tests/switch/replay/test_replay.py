# SPDX-License-Identifier: Apache-2.0
"""A saved trace holds all that the packet needs, and no more: a switch with nothing else does the same with it."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from finsy.proto import p4r
from google.protobuf import text_format

from tailrace.bmv2.process import available
from tailrace.emulation import replay as on_bmv2
from tailrace.spec import SpecError
from tailrace.switch.replay import document, runner, stf
from tailrace.switch.replay.document import SavedTrace, TraceDocument, outcome
from tailrace.switch.trace import Trace, events
from tests.long import some
from tests.switch.replay import stf_runner
from tests.switch.replay.switches import NOW_NS, Source
from tests.switch.trace.test_dry_run import BUILT, NAMES, PORTS, frames

TRACES = 40
"""Packets of a program that are tried; every other one is saved."""

ENOUGH = 12
"""Entities of a kind that are taken away."""

STATEFUL = ["cloning", "registers", "multicast", "action_profiles", "value_sets", "match_kinds", "p4rt_all"]
"""Programs whose packets need most kinds of entities."""


def traces(name: str, number: int = TRACES, seed: int = 0) -> Iterator[tuple[Trace, TraceDocument]]:
    """Of random packets, with entries that come as packets miss."""
    chooser = random.Random(len(name) + seed)
    packets = frames(chooser)
    with closing(Source(name, seed=len(name) + seed)) as source:
        for n in range(number):
            tried = source.tried(chooser.choice(PORTS), next(packets))
            if n % 2:
                yield tried.trace, source.saved(tried)
            source.enter(tried.trace.steps)


def kind_of(update: p4r.Update) -> str:
    replication = update.entity.packet_replication_engine_entry
    return str(replication.WhichOneof("type") or update.entity.WhichOneof("entity"))


def with_request(made: TraceDocument, request: p4r.WriteRequest) -> TraceDocument:
    return msgspec.structs.replace(made, write_request=text_format.MessageToString(request))


@pytest.mark.parametrize("name", some(NAMES, 3))
def test_a_saved_trace_is_repeated(name: str, tmp_path: Path) -> None:
    """Through the file, on a fresh switch: the same frames leave, and what is dropped is for the same reason."""
    for trace, made in traces(name):
        path = tmp_path / "trace.json"
        path.write_text(document.as_json(made))
        saved = document.read(path)
        assert saved.document == made
        assert made.expected == outcome(trace)
        repeated = outcome(runner.run(saved))
        assert list(runner.differences(made.expected, repeated, reasons=True)) == []


def test_every_kind_of_entity_is_needed() -> None:
    """Without one of them the packet's way is another one, or another entity has no place to go."""
    kinds: Counter[str] = Counter()
    for name in STATEFUL:
        for _, made in traces(name):
            saved = SavedTrace(made)
            if all(kinds[kind_of(update)] == ENOUGH for update in saved.updates):
                continue
            natural = runner.run(saved).steps
            for at, update in enumerate(saved.updates):
                kind = kind_of(update)
                # a meter's colour is one of the choices
                if kind == "meter_entry" or kinds[kind] == ENOUGH:
                    continue
                rest = p4r.WriteRequest(updates=[*saved.updates[:at], *saved.updates[at + 1 :]])
                try:
                    other = runner.run(SavedTrace(with_request(made, rest))).steps
                except SpecError:
                    assert kind.startswith("action_profile_")
                else:
                    assert other != natural, update
                kinds[kind] += 1
    assert kinds.keys() >= {
        *("table_entry", "action_profile_group", "action_profile_member", "register_entry"),
        *("clone_session_entry", "multicast_group_entry", "value_set_entry"),
    }, kinds


@pytest.mark.parametrize("seed", range(2))
def test_a_group_that_has_chosen_several_members(seed: int) -> None:
    """As for copies of one packet: here for two packets. The group has both members, and the choices say which."""
    chooser = random.Random(seed)
    with closing(Source("action_profiles", seed=seed)) as source:
        some_frames = list(itertools.islice(frames(chooser), 120))
        for frame in some_frames:
            source.enter(source.tried(1, frame).trace.steps)
        # once more, for entries have changed since
        tries = [source.tried(1, frame) for frame in some_frames]
        hits = [t for t in tries if any(isinstance(s, events.MemberEvent) and s.of > 1 for _, s in t.events)]
        pairs = (
            (pair, source.device.needs([*pair[0].events, *pair[1].events], NOW_NS))
            for pair in itertools.combinations(hits, 2)
        )
        pair, needs = next(candidate for candidate in pairs if len(candidate[1].choices) == 2)
        assert sorted(needs.choices) == [0, 1]
        for tried, choice in zip(pair, needs.choices, strict=True):
            narrowed = msgspec.structs.replace(needs, choices=(choice,))
            made = document.document_of(tried.trace, narrowed, source.config)
            repeated = outcome(runner.run(SavedTrace(made)))
            assert list(runner.differences(outcome(tried.trace), repeated, reasons=True)) == []


@pytest.mark.skipif(not available(), reason="simple_switch_grpc is not on PATH")
@pytest.mark.parametrize("name", some([*STATEFUL, "meters", "const_entries", "resubmit_recirculate"], 2))
def test_bmv2_repeats_it(name: str) -> None:
    """Two traces of each program, but those that draw a random number or have registers of 64 bits."""
    done = 0
    for _, made in list(traces(name))[::-1]:
        try:
            repeated = on_bmv2.run(SavedTrace(made))
        except SpecError as error:
            assert "63 bits" in str(error) or "write was refused" in str(error)  # clones are truncated
            continue
        assert list(runner.differences(made.expected, repeated, reasons=False)) == []
        done += 1
        if done == 2:
            return
    raise AssertionError("no trace that BMv2 can have")


@pytest.mark.parametrize(
    "name", some(["match_kinds", "cloning", "meters", "multicast", "registers", "digests"], 2)
)
def test_stf(name: str) -> None:
    """What is exported is a test that holds on the native switch; what cannot be said is said in a line."""
    done, sayings = 0, set()
    for _, made in traces(name, seed=7):
        try:
            text = stf.test_source(SavedTrace(made))
        except SpecError as error:
            sayings.add(str(error).partition(": ")[2])
            continue
        expected, sent = stf_runner.run(text, name, BUILT)
        assert sorted(expected) == sorted(sent), text
        assert sorted(expected) == sorted((frame.port, frame.frame) for frame in made.expected.sent)
        done += 1
    assert done > 2, sayings
    assert all(saying.startswith("STF cannot express it: ") for saying in sayings)


def test_what_stf_cannot_say() -> None:
    reasons = set()
    for name in ("action_profiles", "value_sets"):
        for _, made in traces(name, 20):
            try:
                stf.test_source(SavedTrace(made))
            except SpecError as error:
                reasons.add(str(error).partition(": ")[2])
    assert reasons >= {"STF cannot express it: an action profile", "STF cannot express it: a value set"}
