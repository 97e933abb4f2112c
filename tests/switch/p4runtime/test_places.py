# SPDX-License-Identifier: Apache-2.0
"""Many streams of one client: others get RESOURCE_EXHAUSTED, and a new primary finds one."""

from __future__ import annotations

import grpc
import pytest

from tailrace.p4rt.status import Code
from tailrace.switch.p4runtime import arbitration, service
from tests.eventually import eventually
from tests.switch.p4runtime.conftest import Rig, RigMaker

EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
FULL = (EXHAUSTED, "4 streams are open; the limit is 4")
GIVEN_AWAY = (EXHAUSTED, "too many streams are open; this one was evicted for a new primary")


@pytest.fixture
def rig(make_rig: RigMaker, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """Has four places."""
    monkeypatch.setattr(service, "MAX_STREAMS", 4)
    monkeypatch.setattr(service, "ANNOUNCED_WHEN_FULL_S", 0.2)
    for module in (arbitration, service):
        monkeypatch.setattr(module, "MAX_ROLE_STREAMS", 3)
    return make_rig()


def announced(rig: Rig, election_id: int, role: str | None = None):
    """A stream that has its place, and the status that it got."""
    session = rig.session()
    session.arbitrate(election_id, role=role)
    return session, session.status()


def test_a_primary_returns_to_a_full_switch(rig: Rig) -> None:
    """It has the highest id that was ever there: a backup goes, with a reason, and nobody else gets in."""
    primary = rig.primary(100)
    backups = [announced(rig, number)[0] for number in (7, 9)]
    other, _ = announced(rig, 5, "other")
    primary.close()
    assert [backup.status() for backup in backups] == [Code.NOT_FOUND] * 2
    late, _ = announced(rig, 3)
    for election_id, role in ((8, "new"), (2, "other"), (None, "other")):
        refused = rig.session()
        refused.arbitrate(election_id, role=role)
        assert refused.ended() == FULL
    returned = rig.primary(100)
    assert late.ended() == GIVEN_AWAY
    assert rig.push("p4rt_all")
    assert [backup.status() for backup in backups] == [Code.ALREADY_EXISTS] * 2
    assert other.nothing_waits() and returned.nothing_waits()


def test_a_primary_returns_to_a_full_role(rig: Rig) -> None:
    """Another role's places are not touched."""
    backups = [announced(rig, number, "r")[0] for number in (5, 4, 3)]
    refused = rig.session()
    refused.arbitrate(2, role="r")
    assert refused.ended() == (EXHAUSTED, "more than 3 streams for a role")
    _, code = announced(rig, 6, "r")
    assert code == Code.OK
    assert backups[2].ended() == GIVEN_AWAY


def test_whoever_takes_the_id_of_the_primary_takes_no_place(rig: Rig) -> None:
    primary = rig.primary(5)
    backups = [announced(rig, number, role)[0] for number, role in ((1, None), (2, None), (3, "r"))]
    same = rig.session()
    same.arbitrate(5)
    assert same.ended()[0] == EXHAUSTED
    assert all(session.nothing_waits() for session in (primary, *backups))


def test_who_says_nothing_takes_no_place(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of too many the oldest goes; where all places are taken it goes soon."""
    monkeypatch.setattr(service, "MAX_SILENT", 2)
    silent, streams = [], rig.server.service.streams
    while len(silent) < 3:
        silent.append(rig.session())
        # streams that begin together arrive in any order
        assert eventually(lambda: rig.in_server(lambda: len(streams)) >= min(len(silent), 2))
    assert silent[0].ended() == (EXHAUSTED, "2 streams have sent no arbitration update; the limit is 2")
    for number, session in enumerate(silent[1:], 1):
        session.arbitrate(number)
        assert session.status() == Code.OK
    sessions = [announced(rig, number, "r")[0] for number in (1, 2)]
    assert rig.session().ended() == FULL
    assert all(session.nothing_waits() for session in sessions[1:])


def test_who_says_nothing_for_long(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "ANNOUNCED_S", 0.2)
    message = "the stream has sent no arbitration update for 0.2 s"
    assert rig.session().ended() == (grpc.StatusCode.DEADLINE_EXCEEDED, message)
