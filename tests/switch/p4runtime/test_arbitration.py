# SPDX-License-Identifier: Apache-2.0
"""Client arbitration over real streams (SEMANTICS §2 rows 1-8)."""

from __future__ import annotations

import grpc
import pytest
from finsy.proto import p4r

from tailrace.p4rt.status import Code
from tailrace.switch.daemon.command_line import make_parser, parse_options
from tailrace.switch.daemon.options import OptionError
from tailrace.switch.p4runtime import arbitration, service
from tailrace.switch.p4runtime.device import DeviceSettings
from tests.switch.p4runtime.conftest import code_of


def test_highest_id_ever_seen_is_primary_and_nobody_is_promoted(make_rig):
    """Row 1: after the primary has gone, backups hear NOT_FOUND and a lower id stays a backup."""
    rig = make_rig()
    high, low = rig.session(), rig.session()
    high.arbitrate(10)
    assert high.status() == Code.OK
    low.arbitrate(5)
    assert low.status() == Code.ALREADY_EXISTS
    high.close()
    update = low.next().arbitration
    assert (update.status.code, update.election_id.low) == (Code.NOT_FOUND, 10)
    low.arbitrate(9)
    assert low.status() == Code.NOT_FOUND
    low.arbitrate(10)
    assert low.status() == Code.OK


def test_new_primary_is_told_and_so_is_the_old_one(make_rig):
    """Row 1: a higher id takes over; both sides hear of it, with the highest id."""
    rig = make_rig()
    old, new = rig.session(), rig.session()
    old.arbitrate(1)
    assert old.status() == Code.OK
    new.arbitrate((1 << 64) + 1)
    assert new.status() == Code.OK
    update = old.next().arbitration
    assert (update.status.code, update.election_id.high) == (Code.ALREADY_EXISTS, 1)


def test_primary_that_downgrades_itself_leaves_no_primary(make_rig):
    """Row 1: everyone is told NOT_FOUND."""
    rig = make_rig()
    first, second = rig.session(), rig.session()
    first.arbitrate(4)
    assert first.status() == Code.OK
    second.arbitrate(2)
    assert second.status() == Code.ALREADY_EXISTS
    first.arbitrate(3)
    assert (first.status(), second.status()) == (Code.NOT_FOUND, Code.NOT_FOUND)


def test_duplicate_election_id_ends_the_stream(make_rig):
    """Row 2: INVALID_ARGUMENT."""
    rig = make_rig()
    first, second = rig.session(), rig.session()
    first.arbitrate(4)
    assert first.status() == Code.OK
    second.arbitrate(4)
    assert second.ended()[0] == grpc.StatusCode.INVALID_ARGUMENT


def test_device_or_role_change_ends_the_stream(make_rig):
    """Row 2: FAILED_PRECONDITION."""
    rig = make_rig()
    for change in ({"device_id": 7}, {"role": "other"}):
        session = rig.session()
        session.arbitrate(None)
        assert session.status() in (Code.OK, Code.NOT_FOUND, Code.ALREADY_EXISTS)
        session.arbitrate(None, **change)
        assert session.ended()[0] == grpc.StatusCode.FAILED_PRECONDITION


def test_unset_election_id_is_never_primary_but_zero_can_be(make_rig):
    """Row 3: unset is not 0."""
    rig = make_rig()
    unset, zero = rig.session(), rig.session()
    unset.arbitrate(None)
    message = unset.next().arbitration
    assert (message.status.code, message.HasField("election_id")) == (Code.NOT_FOUND, False)
    zero.arbitrate(0)
    message = zero.next().arbitration
    assert (message.status.code, message.HasField("election_id")) == (Code.OK, True)


def test_repeated_arbitration_is_answered(make_rig):
    """Row 4: the same id again is notified again."""
    rig = make_rig()
    session = rig.session()
    for _ in range(3):
        session.arbitrate(1)
        assert session.status() == Code.OK


def test_stream_limit(make_rig, monkeypatch):
    """Row 5: 16 streams and more, then RESOURCE_EXHAUSTED; a stream that ends makes room."""
    for module in (arbitration, service):
        monkeypatch.setattr(module, "MAX_ROLE_STREAMS", 17)
    rig = make_rig()
    sessions = [rig.session() for _ in range(17)]
    for number, session in enumerate(sessions):
        session.arbitrate(100 - number)
        assert session.status() in (Code.OK, Code.ALREADY_EXISTS)
    extra = rig.session()
    extra.arbitrate(1)
    assert extra.ended()[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
    sessions[5].close()
    rig.announced(1, Code.ALREADY_EXISTS)


def test_roles_have_their_own_primaries(make_rig):
    """Row 6: the same election id in two roles; each writes under its role, and only there."""
    rig = make_rig()
    rig.primary(3)
    rig.push("p4rt_all")
    other = rig.session()
    other.arbitrate(3, role="monitor")
    message = other.next().arbitration
    assert (message.status.code, message.role.name) == (Code.OK, "monitor")
    rig.election_id = 3
    assert rig.write(role="monitor") == []
    assert code_of(rig.stub.Write, rig.write_request(role="nobody"))[0] == Code.NOT_FOUND
    rig.election_id = 2
    assert code_of(rig.stub.Write, rig.write_request(role="monitor"))[0] == Code.PERMISSION_DENIED


def test_role_config_without_a_scheme_is_refused(make_rig):
    """Row 6: INVALID_ARGUMENT."""
    session = make_rig().session()
    message = p4r.StreamMessageRequest()
    message.arbitration.device_id = 1
    message.arbitration.role.name = "x"
    message.arbitration.role.config.Pack(p4r.TableEntry())
    session.send(message)
    assert session.ended()[0] == grpc.StatusCode.INVALID_ARGUMENT


def test_unknown_device_is_not_found_and_zero_is_a_device(make_rig):
    """Row 7: NOT_FOUND everywhere; device id 0 is allowed."""
    rig = make_rig()
    session = rig.session()
    session.arbitrate(1, device_id=2)
    assert session.ended()[0] == grpc.StatusCode.NOT_FOUND
    for call, request in (
        (rig.stub.Write, p4r.WriteRequest(device_id=2)),
        (rig.stub.SetForwardingPipelineConfig, p4r.SetForwardingPipelineConfigRequest(device_id=2)),
        (rig.stub.GetForwardingPipelineConfig, p4r.GetForwardingPipelineConfigRequest(device_id=2)),
    ):
        with pytest.raises(grpc.RpcError) as error:
            call(request)
        assert error.value.code() == grpc.StatusCode.NOT_FOUND
    with pytest.raises(grpc.RpcError) as error:
        list(rig.stub.Read(p4r.ReadRequest(device_id=2)))
    assert error.value.code() == grpc.StatusCode.NOT_FOUND
    zero = make_rig(settings=DeviceSettings(device_id=0), pushed="p4rt_all")
    assert zero.write() == []


def test_strictly_no_device_has_the_id_zero(make_rig):
    """With --strict the switch does not start with it, and a request that names it is refused."""
    with pytest.raises(OptionError, match="device id 0"):
        parse_options(make_parser(), ["--strict", "--no-p4"])
    with pytest.raises(ValueError, match="device id 0"):
        make_rig(settings=DeviceSettings(device_id=0, strict=True))
    session = make_rig(settings=DeviceSettings(device_id=1, strict=True)).session()
    session.arbitrate(1, device_id=0)
    assert session.ended()[0] == grpc.StatusCode.NOT_FOUND


def test_only_the_primary_writes(make_rig):
    """Row 8: PERMISSION_DENIED for anyone else, FAILED_PRECONDITION before a pipeline is set."""
    rig = make_rig()
    rig.primary(5)

    def code(election_id):
        rig.election_id = election_id
        with pytest.raises(grpc.RpcError) as error:
            rig.stub.Write(rig.write_request())
        return error.value.code()

    assert code(4) == code(6) == code(None) == grpc.StatusCode.PERMISSION_DENIED
    assert code(5) == grpc.StatusCode.FAILED_PRECONDITION
    with pytest.raises(grpc.RpcError) as error:
        rig.read(p4r.Entity())
    assert error.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    rig.election_id = 4
    with pytest.raises(grpc.RpcError) as error:
        rig.push("p4rt_all")
    assert error.value.code() == grpc.StatusCode.PERMISSION_DENIED


def test_compatible_write_without_stream(make_rig):
    """Row 8, B: with the flag and no stream open, a request without election id may write."""
    rig = make_rig(settings=DeviceSettings(device_id=1, bmv2_compat=True))
    rig.election_id = None
    rig.push("p4rt_all")
    assert rig.write() == []
    rig.announced(1)
    assert code_of(rig.stub.Write, rig.write_request())[0] == Code.PERMISSION_DENIED
