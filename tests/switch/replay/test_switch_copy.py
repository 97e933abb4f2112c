# SPDX-License-Identifier: Apache-2.0
"""A copy of a switch, read over P4Runtime, does with packets what the switch does; what cannot be read is named."""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pytest
from finsy.proto import p4r

from tailrace.bmv2.dataplane import Dataplane
from tailrace.bmv2.process import DEVICE_ID, Bmv2Process, available
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.errors import ReadError, UnsupportedError, WriteError
from tailrace.switch.replay.document import outcome
from tailrace.switch.replay.switch_copy import SwitchCopy
from tailrace.switch.trace import TraceError
from tests.long import some
from tests.switch.replay.switches import Source
from tests.switch.replay.test_replay import STATEFUL
from tests.switch.trace.test_dry_run import PORTS, frames

PACKETS = 40


class Reads:
    """A connection to a device in this process that refuses to read some kinds of entities, as BMv2 does."""

    name = "s1"

    def __init__(self, source: Source, refused: Sequence[str] = ()) -> None:
        self._source, self._refused = source, refused
        self.client = self
        self.pipeline = source.config

    async def config(self) -> p4r.ForwardingPipelineConfig:
        return self.pipeline

    def read(self, entities: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        if any(entity.WhichOneof("entity") in self._refused for entity in entities):
            raise ReadError(self.name, "no", "UNIMPLEMENTED")
        responses, failures = self._source.device.read(p4r.ReadRequest(entities=entities))
        assert not any(failures)
        return [entity for response in responses for entity in response.entities]


@contextmanager
def copied(connection: Any) -> Iterator[SwitchCopy]:
    with SwitchCopy(connection, cpu_port=None, priority_queues=2) as copy:
        yield copy


def filled(source: Source, chooser: random.Random) -> list[tuple[int, bytes]]:
    """Packets of which some have entries now, each with its port."""
    packets = frames(chooser)
    chosen = [(chooser.choice(PORTS), next(packets)) for _ in range(PACKETS)]
    for port, frame in chosen:
        source.enter(source.tried(port, frame).trace.steps)
    return chosen


@pytest.mark.parametrize("name", some([*STATEFUL, "const_entries", "priorities"], 4))
def test_it_does_what_the_switch_does(name: str) -> None:
    """Frames and reasons of drops, with entities of all kinds."""
    with closing(Source(name, seed=3)) as source:
        packets = filled(source, random.Random(3))
        with copied(Reads(source)) as copy:
            assert [] == copy.unread
            outcomes = []
            for port, frame in packets:
                (trace,) = copy.traces(port, frame, every=False)
                outcomes.append(outcome(trace))
                assert outcome(source.tried(port, frame).trace) == outcomes[-1]
            assert len(set(map(repr, outcomes))) > 1


def test_it_has_all_outcomes_and_can_be_saved() -> None:
    with closing(Source("action_profiles", seed=1)) as source:
        packets = filled(source, random.Random(1))
        with copied(Reads(source)) as copy:
            assert max(len(copy.traces(port, frame, every=True)) for port, frame in packets) > 1
            trace, needs = copy.needs(*packets[0])
            assert outcome(trace) == outcome(source.tried(*packets[0]).trace)
            assert needs.program == source.device.needs(source.tried(*packets[0]).events, 0).program


def test_what_cannot_be_read_is_named() -> None:
    """Registers and value sets, as on BMv2; then registers hold 0."""
    refused = ["register_entry", "value_set_entry"]
    with closing(Source("registers", seed=2)) as source, copied(Reads(source, refused)) as copy:
        names = [f"register {register.preamble.name}" for register in source.p4info.registers]
        assert names == copy.unread
    with closing(Source("value_sets", seed=2)) as source, copied(Reads(source, refused)) as copy:
        names = [f"value set {value_set.preamble.name}" for value_set in source.p4info.value_sets]
        assert names == copy.unread


@pytest.mark.parametrize("listed", [True, False])
def test_initial_entries_that_are_not_constant(listed: bool) -> None:
    """What is gone on a switch that lists them is gone in the copy; BMv2 does not list them, and keeps them."""
    with closing(Source("const_entries", seed=2)) as source:
        pattern = p4r.Entity(table_entry=p4r.TableEntry(table_id=table_id(source, "initial")))
        first, *remaining = Reads(source).read([pattern])
        assert remaining
        assert source.write(p4r.Update.DELETE, table_entry=first.table_entry)
        with copied(Reads(source, () if listed else ["table_entry"])) as copy:
            kept = [
                e for e in copy.initial_entries() if e.table_entry.table_id == pattern.table_entry.table_id
            ]
            assert len(remaining) + (not listed) == len(kept)
            assert listed == (not copy.unread)


def table_id(source: Source, alias: str) -> int:
    return next(t.preamble.id for t in source.p4info.tables if t.preamble.alias == alias)


@pytest.mark.skipif(not available(), reason="simple_switch_grpc is not on PATH")
@pytest.mark.parametrize("name", some(["match_kinds", "action_profiles", "multicast", "const_entries"], 2))
def test_bmv2_is_copied(name: str) -> None:
    """What the copy of a BMv2 sends is what that BMv2 sends, with entities of all kinds that it takes."""
    with closing(Source(name, seed=3)) as source, tempfile.TemporaryFile() as log:
        packets = filled(source, random.Random(3))
        with Bmv2Process(log, priority_queues=2) as bmv2:
            bmv2.wait_ready()
            connection = GrpcConnection("s1", bmv2.address, DEVICE_ID)
            run_at_once(connection.client.become_primary(1))
            request = p4r.SetForwardingPipelineConfigRequest(
                action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT, config=source.config
            )
            run_at_once(connection.client.set_pipeline(request, name))
            with copied(Reads(source)) as all_of_it:
                for update in all_of_it.updates:
                    with contextlib.suppress(WriteError):
                        connection.write([update])
            dataplane = Dataplane(bmv2.dataplane, DEVICE_ID)
            with copied(connection) as copy:
                for port, frame in packets:
                    (sent,) = dataplane.window([(port, frame)])
                    (trace,) = copy.traces(port, frame, every=False)
                    frames_sent = sorted(
                        (sent_frame.port, sent_frame.data) for sent_frame in outcome(trace).sent
                    )
                    assert sorted(sent) == frames_sent
            dataplane.close()
            connection.close()


def test_no_program_and_a_bad_one() -> None:
    """One line with the switch."""
    with closing(Source("basic_l3", seed=1)) as source:
        connection = Reads(source)
        connection.pipeline = p4r.ForwardingPipelineConfig()
        with pytest.raises(UnsupportedError, match="s1: its program cannot be read"), copied(connection):
            pass
        connection.pipeline = p4r.ForwardingPipelineConfig(p4info=source.p4info, p4_device_config=b"{}")
        refusal = pytest.raises(TraceError, match="s1: cannot be copied for a dry run: program: ")
        with refusal as caught, copied(connection):
            pass
        assert "\n" not in str(caught.value)
