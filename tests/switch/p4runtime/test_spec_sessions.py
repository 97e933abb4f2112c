# SPDX-License-Identifier: Apache-2.0
"""Requirements on sessions (specification 5, 16.2) that no other test shows.

requirements.toml says which test shows what.
"""

from __future__ import annotations

import time

import grpc
import pytest
from finsy.proto import p4r

from tailrace.p4rt.status import Code
from tailrace.switch.p4runtime import service
from tailrace.switch.p4runtime.device import DeviceSettings
from tests.switch.p4runtime.conftest import Rig, RigMaker, code_of
from tests.switch.p4runtime.long_writes import entries_now, large_counter, writing
from tests.switch.p4runtime.test_externs import counter, modify
from tests.switch.p4runtime.test_tables import mac, read

OK, DENIED = Code.OK, Code.PERMISSION_DENIED


def write_code(rig: Rig, election_id: int | None, role: str = "") -> Code:
    """How an empty Write with this election id ends."""
    request = rig.write_request(role=role)
    request.ClearField("election_id")
    if election_id is not None:
        request.election_id.low = election_id
    try:
        rig.stub.Write(request, timeout=60)
    except grpc.RpcError as error:
        assert isinstance(error, grpc.Call)
        return Code(error.code().value[0])
    return OK


def test_when_the_primary_has_gone_nobody_writes(make_rig: RigMaker) -> None:
    """Not with its id, nor with a backup's, until somebody announces one that is at least as high."""
    rig = make_rig()
    primary = rig.primary(5)
    rig.push("p4rt_all")
    backup = rig.announced(3, Code.ALREADY_EXISTS)
    primary.close()
    assert backup.status() == Code.NOT_FOUND
    assert [write_code(rig, election_id) for election_id in (5, 3)] == [DENIED, DENIED]
    backup.arbitrate(6)
    assert backup.status() == OK
    assert [write_code(rig, election_id) for election_id in (5, 6)] == [DENIED, OK]


def test_a_takeover(make_rig: RigMaker) -> None:
    """The old primary hears of it, and may neither write nor push; the messages name device and default role."""
    rig = make_rig()
    old = rig.primary(5)
    rig.push("p4rt_all")
    new = rig.session()
    new.arbitrate(7)
    update = new.next().arbitration
    assert (update.device_id, update.election_id.low, update.status.code) == (1, 7, OK)
    assert not update.HasField("role")
    update = old.next().arbitration
    assert (update.device_id, update.election_id.low, update.status.code) == (1, 7, Code.ALREADY_EXISTS)
    assert [write_code(rig, election_id) for election_id in (5, 7)] == [DENIED, OK]
    assert (
        code_of(rig.stub.SetForwardingPipelineConfig, rig.config_request("p4rt_all"))[0] == DENIED
    )  # by the old primary


def test_a_later_election_id_that_is_taken_ends_the_stream(make_rig: RigMaker) -> None:
    """INVALID_ARGUMENT; who has it stays primary."""
    rig = make_rig()
    rig.primary(5)
    rig.push("p4rt_all")
    other = rig.announced(4, Code.ALREADY_EXISTS)
    other.arbitrate(5)
    code, said = other.ended()
    assert code == grpc.StatusCode.INVALID_ARGUMENT and "5" in said
    assert write_code(rig, 5) == OK


def test_what_a_backup_does_is_told_to_it_alone(make_rig: RigMaker) -> None:
    """Neither the primary nor other backups hear of it."""
    rig = make_rig()
    sessions = [rig.primary(5), rig.session(), rig.session()]
    for number, session in enumerate(sessions[1:], 2):
        session.arbitrate(number)
        assert session.status() == Code.ALREADY_EXISTS
    sessions[1].arbitrate(1)
    assert sessions[1].status() == Code.ALREADY_EXISTS
    for session, election_id, status in ((sessions[0], 5, OK), (sessions[2], 4, Code.ALREADY_EXISTS)):
        assert session.nothing_waits()
        if session is not sessions[0]:
            session.arbitrate(election_id)
            assert session.status() == status  # and nothing before


def test_a_restart_forgets_election_ids(make_rig: RigMaker) -> None:
    """A server that starts anew takes any id as the highest."""
    for election_id in (9, 1):
        make_rig().primary(election_id)


def long_write(rig: Rig) -> list[p4r.Update]:
    """Updates that take a while, every other one an entry: between any two of them others are served."""
    rig.push("p4rt_all")
    large_counter(rig)
    batch = [mac(rig, number) for number in range(1, 301)]
    for number in range(1, 601, 2):
        batch.insert(number, modify(counter(rig, None, number)))
    return batch


def test_a_write_under_way_is_finished_before_a_takeover(make_rig: RigMaker) -> None:
    """The new primary is told when all of it is done; what the old one sends meanwhile is refused then."""
    rig = make_rig()
    rig.primary(5)
    codes: list[Code] = []
    batch = long_write(rig)
    thread = writing(rig, batch, codes)
    new = rig.session()
    new.arbitrate(6)
    while thread.is_alive() and not rig.in_server(lambda: rig.server.service._lock.has_waiters()):
        time.sleep(0.001)
    assert thread.is_alive()
    assert write_code(rig, 5) == DENIED
    assert new.status() == OK
    assert len(read(rig, "mac")) == 300
    thread.join()
    assert codes == [OK] * len(batch)


@pytest.mark.parametrize("atomicity", [0, 1])
@pytest.mark.parametrize("role", ["", "other"])
def test_a_write_under_way_is_finished_when_its_primary_goes(
    make_rig: RigMaker, atomicity: int, role: str
) -> None:
    """Its stream ends, and with it a role of its own: the Write goes on, and the next primary waits for it."""
    rig = make_rig()
    primary = rig.primary(5)
    batch = long_write(rig)
    if atomicity:  # no more cells than can be taken back
        batch = [*batch[:25], *(update for update in batch[25:] if update.entity.HasField("table_entry"))]
    if role:
        primary = rig.announced(5, role=role)
    codes: list[Code] = []
    thread = writing(rig, batch, codes, atomicity, role)
    primary.close()
    while rig.in_server(lambda: len(rig.server.service.streams)) > bool(role):
        time.sleep(0.001)
    assert thread.is_alive() and not codes
    rig.announced(6, role=role or None)
    assert len(read(rig, "mac")) == 300
    thread.join()
    assert codes == [OK] * len(batch)


def test_a_write_under_way_is_finished_when_its_client_goes(make_rig: RigMaker) -> None:
    """The call is cancelled, too: nobody is told, and the next primary finds all of it."""
    rig = make_rig()
    primary = rig.primary(5)
    batch = long_write(rig)
    call = rig.stub.Write.future(rig.write_request(*batch), timeout=60)
    while not entries_now(rig):
        time.sleep(0.001)
    call.cancel()
    primary.close()
    assert 0 < entries_now(rig) < 300
    rig.announced(6)
    assert len(read(rig, "mac")) == 300
    rig.election_id = 6
    assert rig.write(mac(rig, 301)) == [OK]


def test_a_write_does_not_go_on_for_ever_without_its_client(
    make_rig: RigMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some seconds the rest is not carried out."""
    monkeypatch.setattr(service, "TAKEOVER_S", 0.01)
    rig = make_rig()
    rig.primary(5)
    batch = long_write(rig)
    call = rig.stub.Write.future(rig.write_request(*batch), timeout=60)
    while not entries_now(rig):
        time.sleep(0.001)
    call.cancel()
    assert 0 < len(read(rig, "mac")) < 300  # which waits for it
    assert rig.write(mac(rig, 301)) == [OK]


def test_a_primary_may_change_its_id_during_its_write(make_rig: RigMaker) -> None:
    """It stays the primary with a higher one, and with a lower one what it has begun is finished."""
    rig = make_rig()
    primary = rig.primary(5)
    batch = long_write(rig)
    codes: list[Code] = []
    thread = writing(rig, batch, codes)
    primary.arbitrate(6)
    assert primary.status() == OK
    primary.arbitrate(4)
    primary.status()
    assert thread.is_alive()
    thread.join()
    assert codes == [OK] * len(batch)


def test_compatibly_a_write_needs_no_stream_and_is_finished_before_there_is_a_primary(
    make_rig: RigMaker,
) -> None:
    """Nor is it cut off when the next backup is promoted as the primary goes."""
    rig = make_rig(settings=DeviceSettings(device_id=1, bmv2_compat=True))
    rig.election_id = None
    batch = long_write(rig)
    codes: list[Code] = []
    thread = writing(rig, batch, codes)
    primary = rig.announced(6)
    assert len(read(rig, "mac")) == 300
    thread.join()
    rig.election_id = 6
    thread = writing(rig, long_write(rig), codes)
    backup = rig.announced(4, Code.ALREADY_EXISTS)
    primary.close()
    assert backup.status() == OK
    assert thread.is_alive()
    thread.join()
    assert codes == [OK] * 2 * len(batch)


def test_a_takeover_does_not_wait_for_ever(make_rig: RigMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some seconds the rest of the old primary's Write is PERMISSION_DENIED."""
    monkeypatch.setattr(service, "TAKEOVER_S", 0.01)
    rig = make_rig()
    rig.primary(5)
    batch = long_write(rig)
    codes: list[Code] = []
    thread = writing(rig, batch, codes)
    rig.announced(6)
    thread.join()
    done = codes.count(OK)
    assert 0 < done < len(codes) == len(batch)
    assert codes == [OK] * done + [DENIED] * (len(codes) - done)


def test_who_would_take_over_and_goes_holds_up_nobody(make_rig: RigMaker) -> None:
    """While it waits for the Write under way; and what is no takeover is answered at once."""
    rig = make_rig()
    rig.primary(5)
    batch = long_write(rig)
    codes: list[Code] = []
    thread = writing(rig, batch, codes)
    rig.announced(4, Code.ALREADY_EXISTS)
    other_role = rig.session()
    other_role.arbitrate(9, role="other")
    assert other_role.status() == OK
    assert thread.is_alive()
    gone = rig.session()
    gone.arbitrate(6)
    gone.close()
    thread.join()
    assert codes == [OK] * len(batch)
    rig.announced(7)
    rig.election_id = 7
    assert write_code(rig, 7) == OK
