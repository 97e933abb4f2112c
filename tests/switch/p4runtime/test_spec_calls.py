# SPDX-License-Identifier: Apache-2.0
"""Requirements on calls (specification 10, 12 to 15) that no other test shows.

requirements.toml says which test shows what.
"""

from __future__ import annotations

import grpc
import pytest
from finsy.proto import p4r

from tailrace.p4rt.status import Code
from tailrace.switch.p4runtime import service
from tailrace.switch.p4runtime.device import DeviceSettings
from tests.switch.p4runtime.conftest import Rig, RigMaker, code_of, details_of, everything_of, status_of
from tests.switch.p4runtime.test_externs import group, modify
from tests.switch.p4runtime.test_profiles import group as members_of
from tests.switch.p4runtime.test_profiles import hop, member
from tests.switch.p4runtime.test_tables import defaults, mac, read

INSERT, DELETE = p4r.Update.INSERT, p4r.Update.DELETE
OK, INVALID, DENIED = Code.OK, Code.INVALID_ARGUMENT, Code.PERMISSION_DENIED
_Set = p4r.SetForwardingPipelineConfigRequest


# ---- 10, 12.3, 13.3: how errors are told ----


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
    rig = make_rig(settings=DeviceSettings(device_id=1, strict=True), pushed="p4rt_all")
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


# ---- 12, 13: Write and Read ----


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
    requests = everything_of(
        "extern_entry", "action_profile_member", "packet_replication_engine_entry", "counter_entry"
    )
    entities = rig.read(*requests, requests[1])
    kinds = [entity.WhichOneof("entity") for entity in entities]
    assert kinds.count("action_profile_member") == 2
    assert kinds.count("packet_replication_engine_entry") == 1 and kinds.count("counter_entry") == 8


def test_defaults_of_many_tables_are_one_step(make_rig: RigMaker) -> None:
    """DATAPLANE_ATOMIC: all of the batch, or nothing where one update is wrong."""
    rig = make_rig(pushed="match_kinds")
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
