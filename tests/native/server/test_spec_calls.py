# SPDX-License-Identifier: Apache-2.0
"""Requirements on sessions and calls (specification 5, 10 to 15) that no other test shows.

requirements.toml says which test shows what.
"""

from __future__ import annotations

import json
import threading
import time
from types import ModuleType

import grpc
import pytest
from finsy.proto import p4r, rpc_status

from tailrace.native.server import service
from tailrace.native.server.device import Settings
from tailrace.native.server.waiting import answers
from tailrace.p4rt.status import Code
from tests.native.server.conftest import TIMEOUT_S, Rig, RigMaker, details_of
from tests.native.server.test_externs import counter, group, modify
from tests.native.server.test_profiles import group as members_of
from tests.native.server.test_profiles import hop, member
from tests.native.server.test_tables import acl, defaults, mac, read, route

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE
OK, INVALID, DENIED = Code.OK, Code.INVALID_ARGUMENT, Code.PERMISSION_DENIED
CELLS = 5000
"""Of an array that is written in 80 slices, and of which a Write of many lasts for seconds."""
_Set = p4r.SetForwardingPipelineConfigRequest


def code_of(call, *arguments) -> tuple[Code, str]:
    """How a call is refused."""
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments, timeout=60)
    assert isinstance(caught.value, grpc.Call)
    return Code(caught.value.code().value[0]), caught.value.details() or ""


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


# ---- 5, 16.2: arbitration ----


def test_when_the_primary_has_gone_nobody_writes(make_rig: RigMaker) -> None:
    """Not with its id, nor with a backup's, until somebody announces one that is at least as high."""
    rig = make_rig()
    primary = rig.primary(5)
    rig.push("p4rt_all")
    backup = rig.session()
    backup.arbitrate(3)
    assert backup.status() == Code.ALREADY_EXISTS
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
    told = new.next().arbitration
    assert (told.device_id, told.election_id.low, told.status.code) == (1, 7, OK)
    assert not told.HasField("role")
    told = old.next().arbitration
    assert (told.device_id, told.election_id.low, told.status.code) == (1, 7, Code.ALREADY_EXISTS)
    assert [write_code(rig, election_id) for election_id in (5, 7)] == [DENIED, OK]
    assert (
        code_of(rig.stub.SetForwardingPipelineConfig, rig.config_request("p4rt_all"))[0] == DENIED
    )  # by the old primary


def test_a_later_election_id_that_is_taken_ends_the_stream(make_rig: RigMaker) -> None:
    """INVALID_ARGUMENT; who has it stays primary."""
    rig = make_rig()
    rig.primary(5)
    rig.push("p4rt_all")
    other = rig.session()
    other.arbitrate(4)
    assert other.status() == Code.ALREADY_EXISTS
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


def writing(rig: Rig, updates: list[p4r.Update], codes: list[Code], atomicity: int = 0) -> threading.Thread:
    """Starts a Write of new entries and returns when a part of it has been done."""
    request = rig.write_request(*updates, atomicity=atomicity)
    before = entries_now(rig)

    def write() -> None:
        try:
            rig.stub.Write(request, timeout=60)
            codes.extend([OK] * len(updates))
        except grpc.RpcError as error:
            codes.extend(Code(detail.canonical_code) for detail in details_of(error))

    thread = threading.Thread(target=write)
    thread.start()
    while thread.is_alive() and entries_now(rig) == before:
        time.sleep(0.001)
    return thread


def large_counter(rig: Rig) -> None:
    """Sets the pipeline with more cells of by_port."""
    request = rig.config_request("p4rt_all")
    program = json.loads(request.config.p4_device_config)
    (array,) = (one for one in program["counter_arrays"] if one["name"] == "AllIngress.by_port")
    array["size"] = request.config.p4info.counters[0].size = CELLS
    request.config.p4_device_config = json.dumps(program).encode()
    rig.stub.SetForwardingPipelineConfig(request, timeout=60)


def entries_now(rig: Rig) -> int:
    """How many entries there are between two slices of a Write."""
    asked = p4r.Entity(table_entry=p4r.TableEntry(table_id=rig.names.id("tables", "mac")))

    def count() -> int:
        pipeline = rig.device._active
        assert pipeline is not None
        return sum(1 for _ in pipeline.state.entities(asked))

    return rig.in_server(count)


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
    while thread.is_alive() and not rig.in_server(lambda: rig.server.service._claims.waits()):
        time.sleep(0.001)
    assert thread.is_alive()
    assert write_code(rig, 5) == DENIED
    assert new.status() == OK
    assert len(read(rig, "mac")) == 300
    thread.join()
    assert codes == [OK] * len(batch)


def test_a_takeover_does_not_wait_for_ever(make_rig: RigMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some seconds the rest of the old primary's Write is PERMISSION_DENIED."""
    monkeypatch.setattr(service, "TAKEOVER_S", 0.01)
    rig = make_rig()
    rig.primary(5)
    batch = long_write(rig)
    codes: list[Code] = []
    thread = writing(rig, batch, codes)
    new = rig.session()
    new.arbitrate(6)
    assert new.status() == OK
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
    backup = rig.session()
    backup.arbitrate(4)
    assert backup.status() == Code.ALREADY_EXISTS
    other_role = rig.session()
    other_role.arbitrate(9, role="other")
    assert other_role.status() == OK
    assert thread.is_alive()
    gone = rig.session()
    gone.arbitrate(6)
    gone.close()
    thread.join()
    assert codes == [OK] * len(batch)
    new = rig.session()
    new.arbitrate(7)
    assert new.status() == OK
    rig.election_id = 7
    assert write_code(rig, 7) == OK


# ---- 10, 12.3, 13.3: how errors are told ----


def status_of(error: grpc.RpcError) -> rpc_status.Status | None:
    assert isinstance(error, grpc.Call)
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            return rpc_status.Status.FromString(value if isinstance(value, bytes) else value.encode())
    return None


def test_the_status_of_a_batch(rig: Rig) -> None:
    """Code and message twice the same; one p4.v1.Error for each update, those that went well with nothing but OK."""
    with pytest.raises(grpc.RpcError) as caught:
        rig.stub.Write(rig.write_request(mac(rig, 1), mac(rig, 1), mac(rig, 2)))
    assert isinstance(caught.value, grpc.Call)
    status = status_of(caught.value)
    assert status is not None
    assert (status.code, status.message) == (Code.UNKNOWN, caught.value.details())
    good, bad, other = details_of(caught.value)
    assert good == other == p4r.Error()
    assert bad.canonical_code == Code.ALREADY_EXISTS and "AllIngress.mac" in bad.message


def test_an_error_of_the_whole_call_has_no_details(rig: Rig) -> None:
    """Before any update was tried; the code says what it was."""
    request = rig.write_request(mac(rig, 1), atomicity=9)
    with pytest.raises(grpc.RpcError) as caught:
        rig.stub.Write(request)
    assert isinstance(caught.value, grpc.Call)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT and "9" in (caught.value.details() or "")
    assert status_of(caught.value) is None


def test_details_of_a_very_large_batch(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Left out beyond 512 KiB, which is set lower here; the message counts them and tells the first."""
    monkeypatch.setattr(service, "MAX_DETAILS", 1000)
    with pytest.raises(grpc.RpcError) as caught:
        rig.stub.Write(rig.write_request(*(mac(rig, number, kind=DELETE) for number in range(1, 100))))
    assert isinstance(caught.value, grpc.Call)
    assert caught.value.code() == grpc.StatusCode.UNKNOWN and status_of(caught.value) is None
    said = caught.value.details() or ""
    assert "99 of 99" in said and "number 1: NOT_FOUND" in said


def test_strictly_all_details_are_told(make_rig: RigMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --strict however large they are; a client that takes less fails by itself."""
    monkeypatch.setattr(service, "MAX_DETAILS", 1000)
    rig = make_rig(settings=Settings(device_id=1, strict=True))
    rig.primary()
    rig.push("p4rt_all")
    with pytest.raises(grpc.RpcError) as caught:
        rig.stub.Write(rig.write_request(*(mac(rig, number, kind=DELETE) for number in range(1, 100))))
    assert [detail.canonical_code for detail in details_of(caught.value)] == [Code.NOT_FOUND] * 99


def test_a_read_of_good_and_bad_requests(rig: Rig) -> None:
    """The good ones are answered; one p4.v1.Error for each request, in order."""
    assert rig.write(mac(rig, 1)) == [OK]
    good, bad, empty = p4r.Entity(), p4r.Entity(), p4r.Entity()
    good.table_entry.table_id = rig.names.id("tables", "mac")
    bad.counter_entry.counter_id = rig.names.id("counters", "by_port")
    bad.counter_entry.index.index = 8
    got = []
    with pytest.raises(grpc.RpcError) as caught:
        for response in rig.stub.Read(p4r.ReadRequest(device_id=1, entities=[good, bad, empty, good])):
            got += response.entities
    assert got == [mac(rig, 1).entity] * 2
    assert [d.canonical_code for d in details_of(caught.value)] == [OK, Code.OUT_OF_RANGE, INVALID, OK]


# ---- 11, 12.1, 13.4: what is atomic ----


def test_a_packet_meets_an_entry_before_or_after_its_change(rig: Rig) -> None:
    """Never with one parameter of the old action, and one of the new."""
    assert rig.write(route(rig, b"\x0a\0\0\0", 8, ("rewrite", 1, 1))) == [OK]
    switch, stop, seen = rig.plane.switch, threading.Event(), []
    ip = bytes.fromhex("4500001c0000000040110000") + bytes(4) + b"\x0a\x01\x02\x03"
    frame = bytes(12) + b"\x08\x00" + ip + bytes.fromhex("0035123400080000")

    def send() -> None:
        while not stop.is_set():
            switch.inject(1, frame, rig.plane.clock_ns)
            switch.run(rig.plane.clock_ns)
            seen.extend((output.port, int.from_bytes(output.data[:6], "big")) for output in switch.outputs())

    thread = threading.Thread(target=send)
    thread.start()
    try:
        for value in range(2, 200):
            assert rig.write(route(rig, b"\x0a\0\0\0", 8, ("rewrite", value, value), MODIFY)) == [OK]
    finally:
        stop.set()
        thread.join()
    assert all(port == dst for port, dst in seen)
    assert len(set(seen)) > 10


@pytest.mark.parametrize("atomic", [False, True])
def test_all_cells_of_an_array_are_written_in_slices(rig: Rig, atomic: bool) -> None:
    """A packet that comes between two slices meets new values in front and old ones behind; a Read does not.

    With DATAPLANE_ATOMIC there is no between.
    """
    if atomic:
        assert not torn(rig, atomicity=2, longest_s=0)
    else:
        assert torn(rig, atomicity=0, longest_s=TIMEOUT_S)


def test_strictly_an_array_is_written_at_once(make_rig: RigMaker) -> None:
    """With --strict there is no between either."""
    rig = make_rig(settings=Settings(device_id=1, strict=True))
    rig.primary()
    rig.push("p4rt_all")
    assert not torn(rig, atomicity=0, longest_s=0)


def torn(rig: Rig, atomicity: int, longest_s: float) -> bool:
    """Whether packets have met a part of a Write of a whole array, of 30 at least, or of as many as there are until
    one has; a Read never does.
    """
    large_counter(rig)
    ends = [counter(rig, index) for index in (0, CELLS - 1)]
    index = rig.switch.model.counter("AllIngress.by_port").index
    stop = threading.Event()

    def write() -> None:
        value = 0
        while not stop.is_set():
            value += 1
            assert rig.write(modify(counter(rig, None, value)), atomicity=atomicity) == [OK]

    thread = threading.Thread(target=write)
    thread.start()
    end = time.monotonic() + longest_s
    seen: set[int] = set()
    found = False
    while len(seen) < 30 or (not found and time.monotonic() < end):
        first, last = (entity.counter_entry.data.packet_count for entity in rig.read(*ends))
        assert first == last
        seen.add(first)
        with rig.switch.between_packets():
            packets = [rig.switch.counter_cells(index, at, 1)[0][1] for at in (0, CELLS - 1)]
        found = found or packets[0] != packets[1]
    stop.set()
    thread.join()
    return found


def test_batches_of_two_clients_do_not_mix(rig: Rig) -> None:
    """While a long Write is under way a Write and a Read of what it touches wait for its end, and are answered as
    if it had been alone; of other tables they are answered at once (specification 12.2, 13.4).
    """
    large_counter(rig)
    codes: list[Code] = []
    long = [mac(rig, 1), *[modify(counter(rig, None, 1))] * 1000, mac(rig, 2)]
    thread = writing(rig, long, codes)
    assert rig.write(acl(rig, 5)) == [OK]
    assert read(rig, "acl")
    assert not codes
    assert rig.write(mac(rig, 1), mac(rig, 2), mac(rig, 3)) == [Code.ALREADY_EXISTS] * 2 + [OK]
    thread.join()
    assert codes == [OK] * 1002
    thread = writing(rig, [modify(counter(rig, None, 2)), mac(rig, 4), *long[1:-1], mac(rig, 5)], codes)
    assert len(read(rig, "mac")) == 5
    thread.join()
    assert codes[1002:] == [OK] * 1003


@pytest.mark.parametrize("atomicity", [0, 1, 2])
def test_writes_and_reads_come_one_after_the_other(rig: Rig, atomicity: int) -> None:
    """Each of four clients writes all entries again and again: a Read finds those of one Write."""
    count = 300
    assert rig.write(*(mac(rig, number) for number in range(count))) == [OK] * count
    stop = threading.Event()
    refused: list[Code] = []

    def write(port: int) -> None:
        while not stop.is_set():
            codes = rig.write(
                *(mac(rig, number, ("forward", port), MODIFY) for number in range(count)), atomicity=atomicity
            )
            refused.extend(code for code in codes if code != OK)

    threads = [threading.Thread(target=write, args=(port,)) for port in range(2, 6)]
    for thread in threads:
        thread.start()
    try:
        found = []
        for _ in range(30):
            ports = {entry.action.SerializeToString() for entry in read(rig, "mac")}
            found.append(ports)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not refused
    assert all(len(ports) == 1 for ports in found)
    assert len(set.union(*found)) > 1


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        (None, None),
        ((service, "MAX_ANSWERING", 1000), grpc.StatusCode.RESOURCE_EXHAUSTED),
        ((answers, "REST_S", -1), grpc.StatusCode.ABORTED),
    ],
)
def test_who_reads_slowly_holds_up_no_write(
    rig: Rig,
    limit: tuple[ModuleType, str, int] | None,
    code: grpc.StatusCode | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rest of the answer is kept, and is that of before the Write; where there is no room for it, or it takes
    too long, the Read is refused.
    """
    count = 8000
    assert rig.write(*(mac(rig, number) for number in range(count))) == [OK] * count
    if limit is not None:
        monkeypatch.setattr(*limit)
    asked = p4r.ReadRequest(device_id=1)
    asked.entities.extend(
        [p4r.Entity(table_entry=p4r.TableEntry(table_id=rig.names.id("tables", "mac")))] * 10
    )
    call = rig.stub.Read(asked, timeout=TIMEOUT_S)
    first = next(iter(call))
    assert rig.write(mac(rig, 0, kind=DELETE)) == [OK]
    if code is None:
        rest = [entity for response in call for entity in response.entities]
        assert len(first.entities) + len(rest) == 10 * count
    else:
        with pytest.raises(grpc.RpcError) as caught:
            for _ in call:
                pass
        assert isinstance(caught.value, grpc.Call)
        assert caught.value.code() == code
    assert len(read(rig, "mac")) == count - 1
    assert rig.in_server(lambda: rig.server.service._answering) == 0
    assert not rig.in_server(lambda: rig.server.service._claims._queues)


def test_a_reader_that_goes_leaves_nothing(rig: Rig) -> None:
    """Nor does a Write that waits for it, and goes."""
    count = 8000
    assert rig.write(*(mac(rig, number) for number in range(count))) == [OK] * count
    asked = p4r.ReadRequest(device_id=1)
    asked.entities.extend([p4r.Entity(table_entry=p4r.TableEntry())] * 10)
    for _ in range(5):
        calls = [rig.stub.Read(asked, timeout=TIMEOUT_S) for _ in range(4)]
        for call in calls:
            next(iter(call))
        waiting = [
            rig.stub.Write.future(rig.write_request(mac(rig, n, kind=DELETE)), timeout=60) for n in range(8)
        ]
        for cancel in (*(call.cancel for call in calls), *(call.cancel for call in waiting)):
            cancel()
    assert rig.write(mac(rig, count)) == [OK]
    end = time.monotonic() + TIMEOUT_S
    while rig.in_server(lambda: rig.server.service._claims._queues) and time.monotonic() < end:
        time.sleep(0.01)
    assert not rig.in_server(lambda: rig.server.service._claims._queues)
    assert rig.in_server(lambda: rig.server.service._answering) == 0


def test_dependent_updates_of_one_batch_are_done_in_order(rig: Rig) -> None:
    """Members, the group of them, and the entry that points to it; and back."""
    batch = [member(rig, 1, 1), member(rig, 2, 2), members_of(rig, 1, (1, 1), (2, 1)), hop(rig, group_id=1)]
    assert rig.write(*batch) == [OK] * 4
    for update in batch:
        update.type = DELETE
    assert rig.write(*reversed(batch)) == [OK] * 4
    assert rig.write(*batch[::-1]) == [Code.NOT_FOUND] * 4


def test_checks_of_a_call_come_in_their_order(make_rig: RigMaker) -> None:
    """Device, role, primary, pipeline."""
    rig = make_rig()
    rig.primary(5)
    for method, name in ((rig.stub.Write, "Write"), (rig.stub.SetForwardingPipelineConfig, "Set")):
        make = rig.write_request if name == "Write" else lambda: rig.config_request("p4rt_all")
        request = make()
        request.device_id, request.role, request.election_id.low = 8, "nobody", 4
        code, said = code_of(method, request)
        assert code == Code.NOT_FOUND and "device 8" in said
        request.device_id = 1
        code, said = code_of(method, request)
        assert code == Code.NOT_FOUND and "nobody" in said
        request.role = ""
        assert code_of(method, request)[0] == DENIED
    assert code_of(rig.stub.Write, rig.write_request())[0] == Code.FAILED_PRECONDITION


def test_an_update_without_type_or_entity(rig: Rig) -> None:
    no_type, no_entity = mac(rig, 1, kind=0), p4r.Update(type=INSERT)
    unknown = mac(rig, 1)
    unknown.type = p4r.Update.Type.ValueType(7)
    assert rig.write(no_type, no_entity, unknown) == [INVALID] * 3
    assert read(rig, "mac") == []


def test_concurrent_reads(rig: Rig) -> None:
    """Each gets all of its answer."""
    assert rig.write(*(mac(rig, number) for number in range(1, 3001))) == [OK] * 3000
    request = p4r.Entity(table_entry=p4r.TableEntry(table_id=rig.names.id("tables", "mac")))
    calls = [rig.stub.Read(p4r.ReadRequest(device_id=1, entities=[request])) for _ in range(8)]
    assert [sum(len(response.entities) for response in call) for call in calls] == [3000] * 8


def test_a_read_of_nothing(rig: Rig) -> None:
    """No requests, no entities; a request for what is not there finds nothing."""
    assert rig.read() == []
    assert read(rig, "mac") == []


def test_several_kinds_in_one_read(rig: Rig) -> None:
    """Of the whole forwarding state, a request for each kind; one kind may come twice."""
    update = mac(rig, 1)
    assert rig.write(update, member(rig, 1), modify(group(3, (1, 1)), INSERT)) == [OK] * 3
    requests = [p4r.Entity() for _ in range(4)]
    for request, kind in zip(
        requests,
        ("extern_entry", "action_profile_member", "packet_replication_engine_entry", "counter_entry"),
        strict=True,
    ):
        getattr(request, kind).SetInParent()
    found = rig.read(*requests, requests[1])
    kinds = [entity.WhichOneof("entity") for entity in found]
    assert kinds.count("action_profile_member") == 2
    assert kinds.count("packet_replication_engine_entry") == 1 and kinds.count("counter_entry") == 8


def test_defaults_of_many_tables_are_one_step(make_rig: RigMaker) -> None:
    """DATAPLANE_ATOMIC: all of the batch, or nothing where one update is wrong."""
    rig = make_rig()
    rig.primary()
    rig.push("match_kinds")
    wrong = defaults(rig, 4)
    wrong[3].entity.table_entry.action.action.params[0].value = b"\x01\0"
    assert rig.write(*defaults(rig, 3), atomicity=2) == [OK] * 6
    codes = rig.write(*wrong, atomicity=2)
    assert codes == [Code.ABORTED] * 3 + [Code.OUT_OF_RANGE] + [Code.ABORTED] * 2
    ((_, data),) = rig.receive(1, bytes(12) + b"\x88\xb5" + bytes(29))
    assert data[14:21] == b"\x03\xee" + b"\x03" * 5


# ---- 14, 15: pipelines ----


@pytest.mark.parametrize(
    "action", [_Set.VERIFY, _Set.VERIFY_AND_SAVE, _Set.VERIFY_AND_COMMIT, _Set.RECONCILE_AND_COMMIT]
)
@pytest.mark.parametrize("without", ["config", "p4info", "p4_device_config"])
def test_every_action_needs_a_whole_config(rig: Rig, action: int, without: str) -> None:
    """INVALID_ARGUMENT with what is missing, and the state is as before."""
    assert rig.write(mac(rig, 1)) == [OK]
    request = rig.config_request("p4rt_all", action)
    (request if without == "config" else request.config).ClearField(without)
    code, said = code_of(rig.stub.SetForwardingPipelineConfig, request)
    assert code == INVALID and without in said
    assert read(rig, "mac") == [mac(rig, 1).entity.table_entry]


def test_a_push_of_what_cannot_be_realised(rig: Rig) -> None:
    """By every action that verifies: INVALID_ARGUMENT, and entries and traffic are as before."""
    assert rig.write(mac(rig, 5, ("forward", 3))) == [OK]
    for action in (1, 2, 3, 5):
        request = rig.config_request("p4rt_all", action)
        request.config.p4_device_config = request.config.p4_device_config.replace(
            b'"mark_to_drop"', b'"unknown"'
        )
        assert code_of(rig.stub.SetForwardingPipelineConfig, request)[0] == INVALID
    frame = bytes.fromhex("0000000000050000000000019999") + bytes(46)
    assert [port for port, _ in rig.receive(1, frame)] == [3]


def test_an_unknown_response_type(rig: Rig) -> None:
    request = p4r.GetForwardingPipelineConfigRequest(device_id=1)
    request.response_type = p4r.GetForwardingPipelineConfigRequest.ResponseType.ValueType(9)
    code, said = code_of(rig.stub.GetForwardingPipelineConfig, request)
    assert code == INVALID and "9" in said
