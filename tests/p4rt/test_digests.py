# SPDX-License-Identifier: Apache-2.0
"""Digests: enabled as part of what a switch must hold, decoded by P4Info, acknowledged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from finsy.proto import p4r

from tailrace.controller.reconcile import differences, reconcile
from tailrace.p4rt import digests, programs
from tailrace.p4rt.digests import ACK_TIMEOUT_NS, DigestMessage
from tailrace.p4rt.encoding import encode
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.errors import ReadError
from tailrace.p4rt.inprocess import InProcess
from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.target import target
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.rlb.failures import DIGEST
from tailrace.sim.network import Network
from tailrace.topology import parse_topology
from tests.controller.inspect.served import read_program
from tests.schemes.planned import intent

TOPOLOGY = parse_topology("leaf-spine:leaves=1,spines=1,hosts=1")
LEARNING = Path(__file__).resolve().parents[1] / "programs" / "build"


def _id_of(program: P4Program) -> int:
    """Of RLB's alert, or of the only digest."""
    ids = {d.preamble.name: d.preamble.id for d in program.p4info.digests}
    return ids.get(DIGEST, next(iter(ids.values())))


def alerts(program: P4Program, *numbers: int) -> p4r.DigestList:
    message = p4r.DigestList(list_id=7, timestamp=99, digest_id=_id_of(program))
    data = message.data.add()
    for number in numbers:
        data.struct.members.add().bitstring = number.to_bytes(4, "big").lstrip(b"\0") or b"\0"
    return message


def test_fields_by_name() -> None:
    """Numbers of any width the server pads them to, under the names of the P4 source."""
    program = programs.load("rlb_drill")
    message = alerts(program, 300, 1 << 20, 0, 77)
    (decoded,) = digests.decode(program, "leaf1", message)
    fields = {"port": 300, "sum": 1 << 20, "packets": 0, "delay_ticks": 77}
    assert decoded == DigestMessage("leaf1", DIGEST, fields, 99)
    ack = digests.acknowledgement(message)
    assert (ack.digest_id, ack.list_id) == (message.digest_id, 7)


def test_any_program() -> None:
    """Another program's digests are decoded alike; those that a program does not have are none."""
    program = read_program(LEARNING, "digests")
    entry, *_ = digests.entries(program)
    (decoded,) = digests.decode(program, "s1", alerts(program, 5, 7))
    assert list(decoded.fields.values()) == [5, 7]
    foreign = alerts(program, 1, 2)
    foreign.digest_id = 1
    assert digests.decode(program, "s1", foreign) == []
    assert encode(program, [entry])[0].digest_entry.config.ack_timeout_ns == ACK_TIMEOUT_NS


@pytest.mark.parametrize("scheme", ["rlb", "ecmp"])
def test_part_of_what_a_switch_must_hold(scheme: str) -> None:
    """Every switch of a program with digests must have them enabled; others need nothing."""
    for desired in intent(TOPOLOGY, parse_scheme(scheme), target("virtual")).values():
        program = programs.load(desired.program)
        kinds = [entity.WhichOneof("entity") for entity in encode(program, desired.entities)]
        assert kinds.count("digest_entry") == len(program.p4info.digests)


class LikeBmv2(InProcess):
    """Shows digests one by one only, and refuses to show one that is not enabled."""

    async def read(self, requests: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        wanted = [request for request in requests if request.HasField("digest_entry")]
        if any(request.digest_entry.digest_id == 0 for request in wanted):
            raise ReadError(self.name, "wildcards are not supported", "UNIMPLEMENTED")
        entities = await super().read(requests)
        if wanted and not any(entity.HasField("digest_entry") for entity in entities):
            raise ReadError(self.name, "not configured", "NOT_FOUND")
        return entities


@pytest.mark.parametrize("endpoint", [InProcess, LikeBmv2])
def test_reconciled_as_everything_else(endpoint: type[InProcess]) -> None:
    """Enabled once, found again, repaired where somebody turned it off or changed it, and removed."""
    desired = intent(TOPOLOGY, parse_scheme("rlb"), target("virtual"))["leaf1"]
    program = programs.load(desired.program)
    with Network(TOPOLOGY) as network:
        switch = endpoint(network.p4rt("leaf1"))
        run_at_once(switch.push(program))
        run_at_once(reconcile(switch, program, desired.entities))
        assert run_at_once(reconcile(switch, program, desired.entities)).writes == 0
        entries = list(digests.entries(program))
        (entry, *_) = encode(program, entries)
        for kind in (p4r.Update.DELETE, p4r.Update.MODIFY):
            spoilt = p4r.Entity()
            spoilt.CopyFrom(entry)
            spoilt.digest_entry.config.max_list_size = 9
            run_at_once(switch.write([p4r.Update(type=kind, entity=spoilt)]))
            (change,) = run_at_once(differences(switch, program, desired.entities))
            assert (change.before is None) == (kind == p4r.Update.DELETE)
            assert change.after == entry
            assert run_at_once(reconcile(switch, program, desired.entities)).writes == 1
        without = [e for e in desired.entities if e not in entries]
        assert run_at_once(reconcile(switch, program, without)).deleted == len(entries)
        assert run_at_once(differences(switch, program, without)) == []


def test_other_refusals_are_errors() -> None:
    """Only the answer that a digest is not enabled means that it is not."""

    class Broken(InProcess):
        async def read(self, requests: Sequence[p4r.Entity]) -> list[p4r.Entity]:
            if any(request.HasField("digest_entry") for request in requests):
                raise ReadError(self.name, "out of order", "INTERNAL")
            return await super().read(requests)

    desired = intent(TOPOLOGY, parse_scheme("rlb"), target("virtual"))["leaf1"]
    program = programs.load(desired.program)
    with Network(TOPOLOGY) as network:
        switch = Broken(network.p4rt("leaf1"))
        run_at_once(switch.push(program))
        with pytest.raises(ReadError, match="leaf1: out of order"):
            run_at_once(reconcile(switch, program, desired.entities))
