# SPDX-License-Identifier: Apache-2.0
"""A push works, or everything is as it was: entries, groups, cells, sessions and traffic."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import grpc
import pytest
from finsy.proto import p4r

from tailrace.p4rt.status import Code
from tailrace.switch.core import StateError, V1ModelSwitch
from tailrace.switch.core import lib as runtime
from tailrace.switch.p4runtime.device import DeviceSettings
from tests.switch.p4runtime.conftest import TIMEOUT_S, Rig, RigMaker, everything_of
from tests.switch.p4runtime.test_tables import mac

SAVE, COMMIT_NEW, COMMIT, RECONCILE = 2, 3, 4, 5
FRAME = bytes.fromhex("0000000000050000000000019999") + bytes(46)
KINDS = (
    *("table_entry", "action_profile_member", "action_profile_group", "counter_entry", "meter_entry"),
    *("register_entry", "value_set_entry", "digest_entry", "packet_replication_engine_entry"),
)
FRAME_PORT = 1
FEW = 12
"""Allocations that fail one after the other from the first on; beyond, every so many-th."""


def populate(rig: Rig) -> None:
    """Something of every kind."""
    ids, batch = rig.names, []
    for number in range(40):
        made = mac(rig, number + 1, ("forward", 3))
        entry = made.entity.table_entry
        entry.metadata, entry.idle_timeout_ns = b"m" * number, 10**9 * number
        if number % 3 == 0:
            entry.meter_config.CopyFrom(p4r.MeterConfig(cir=1, cburst=2, pir=3, pburst=4))
        if number % 5 == 0:
            entry.counter_data.packet_count = number
        batch.append(made)
    for member_id in (1, 2):
        made = p4r.Update(type=p4r.Update.INSERT)
        member = made.entity.action_profile_member
        member.action_profile_id, member.member_id = rig.names.info.action_profiles[0].preamble.id, member_id
        member.action.CopyFrom(ids.action("send", member_id))
        batch.append(made)
    made = p4r.Update(type=p4r.Update.INSERT)
    group = made.entity.action_profile_group
    group.action_profile_id, group.group_id, group.max_size = member.action_profile_id, 7, 4
    for member_id in (1, 2):
        group.members.add(member_id=member_id, weight=2)
    batch.append(made)
    made = p4r.Update(type=p4r.Update.INSERT)
    multicast = made.entity.packet_replication_engine_entry.multicast_group_entry
    multicast.multicast_group_id = 3
    multicast.replicas.add(egress_port=1, instance=1)
    batch.append(made)
    made = p4r.Update(type=p4r.Update.INSERT)
    session = made.entity.packet_replication_engine_entry.clone_session_entry
    session.session_id = 5
    session.replicas.add(egress_port=2, instance=1)
    batch.append(made)
    for name, field in (
        ("register_entry", "words"),
        ("counter_entry", "by_port"),
        ("meter_entry", "by_class"),
    ):
        made = p4r.Update(type=p4r.Update.MODIFY)
        cell = getattr(made.entity, name)
        kind = name.split("_")[0]
        setattr(cell, f"{kind}_id", ids.id(f"{kind}s", field))
        cell.index.index = 2
        if name == "register_entry":
            cell.data.bitstring = b"\x2a"
        elif name == "counter_entry":
            cell.data.packet_count = 9
        else:
            cell.config.CopyFrom(p4r.MeterConfig(cir=1, cburst=2, pir=3, pburst=4))
        batch.append(made)
    made = p4r.Update(type=p4r.Update.INSERT)
    made.entity.digest_entry.digest_id = rig.names.info.digests[0].preamble.id
    made.entity.digest_entry.config.max_list_size = 3
    batch.append(made)
    assert rig.write(*batch) == [Code.OK] * len(batch)


def everything(rig: Rig) -> list[bytes]:
    """All that can be read, the pipeline's configuration, and where a frame goes."""
    requests = everything_of(*KINDS)
    requests[0].table_entry.meter_config.SetInParent()
    # the frame below counts itself, where it comes in and in the first register
    entities = [
        entity
        for entity in rig.read(*requests)
        if entity.counter_entry.index.index != FRAME_PORT
        and not (entity.HasField("register_entry") and entity.register_entry.index.index == 0)
    ]
    read = sorted(entity.SerializeToString(deterministic=True) for entity in entities)
    config = rig.stub.GetForwardingPipelineConfig(
        p4r.GetForwardingPipelineConfigRequest(device_id=1), timeout=TIMEOUT_S
    )
    frames = [bytes([port]) + data for port, data in rig.receive(FRAME_PORT, FRAME)]
    return [*read, config.SerializeToString(deterministic=True), *frames]


def refused(rig: Rig, request: p4r.SetForwardingPipelineConfigRequest) -> tuple[grpc.StatusCode, str] | None:
    """How a push was refused; None: it was not."""
    try:
        rig.stub.SetForwardingPipelineConfig(request, timeout=TIMEOUT_S)
    except grpc.RpcError as error:
        assert isinstance(error, grpc.Call)
        return error.code(), error.details() or ""
    return None


@pytest.fixture
def memory() -> Iterator[Callable[[int], None]]:
    """Lets the core run out of memory after so many blocks."""
    lib = runtime.load()
    yield lib.tr_mem_limit
    lib.tr_mem_limit(-1)


def request_for(rig: Rig, action: int) -> p4r.SetForwardingPipelineConfigRequest:
    request = rig.config_request("p4rt_all", action, cookie=99)
    if action == COMMIT:
        request.ClearField("config")
    return request


@pytest.mark.parametrize("action", [COMMIT_NEW, RECONCILE, SAVE, COMMIT])
def test_out_of_memory_at_every_step(rig: Rig, action: int, memory: Callable[[int], None]) -> None:
    """However far a push gets, what it leaves behind is what was there before."""
    if action == COMMIT:
        rig.push("p4rt_all", SAVE)
    populate(rig)
    before = everything(rig)
    blocks = failures = 0
    while True:
        rig.in_server(lambda: memory(blocks))  # noqa: B023 - it is called at once
        outcome = refused(rig, request_for(rig, action))
        rig.in_server(lambda: memory(-1))
        if outcome is None:
            break
        failures += 1
        assert outcome[0] == grpc.StatusCode.RESOURCE_EXHAUSTED, outcome
        assert everything(rig) == before, blocks
        blocks += 1 if blocks < FEW else 7
    assert failures > FEW
    after = everything(rig)
    if action in (RECONCILE, COMMIT):
        assert [e for e in after if e in before] == [e for e in before if e in after]
    if action == RECONCILE:
        assert len(after) == len(before)
    if action == COMMIT:  # what was saved is the pipeline now
        assert [port for port, _ in rig.receive(FRAME_PORT, FRAME)] == [3]


@pytest.mark.parametrize("action", [COMMIT_NEW, RECONCILE, COMMIT])
@pytest.mark.parametrize(
    "call",
    [
        *("load", "table_insert", "members_add", "group_add", "group_set", "mcast_set", "clone_set"),
        *("entry_meter_set", "entry_counter_set", "register_store", "counter_store", "meter_set_cells"),
    ],
)
def test_every_call_that_fails(rig: Rig, action: int, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, wherever the core says no."""
    if action == COMMIT:
        rig.push("p4rt_all", SAVE)
    populate(rig)
    before = everything(rig)

    def fail(*_: object, **__: object) -> None:
        raise StateError("memory", "no more\nof it")

    with monkeypatch.context() as patched:
        patched.setattr(V1ModelSwitch, call, fail)
        outcome = refused(rig, request_for(rig, action))
    if outcome is not None:
        assert outcome[0] == grpc.StatusCode.RESOURCE_EXHAUSTED and "\n" not in outcome[1]
        assert everything(rig) == before
    else:
        assert action == COMMIT_NEW and call not in ("load", "table_insert"), "it was not needed"
    assert refused(rig, request_for(rig, action)) is None


def test_sizes_beyond_all_memory(make_rig: RigMaker) -> None:
    """They are refused at VERIFY already, with figures, and the live pipeline stays."""
    rig = make_rig(settings=DeviceSettings(device_id=1, memory_limit=1 << 30), pushed="p4rt_all")
    populate(rig)
    before = everything(rig)
    for action in (1, SAVE, COMMIT_NEW, RECONCILE):
        request = rig.config_request("p4rt_all", action)
        next(t for t in request.config.p4info.tables if t.preamble.alias == "initial").size = 1 << 31
        code, message = refused(rig, request) or (None, "")
        assert code == grpc.StatusCode.INVALID_ARGUMENT and str(1 << 31) in message
        request = rig.config_request("p4rt_all", action)
        program = json.loads(request.config.p4_device_config)
        for array in program["counter_arrays"]:
            if array["name"] == "AllIngress.by_port":
                array["size"] = 2 * 10**9
        request.config.p4_device_config = json.dumps(program).encode()
        for counter in request.config.p4info.counters:
            counter.size = 2 * 10**9
        code, message = refused(rig, request) or (None, "")
        assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert str(1 << 30) in message and f"needs {16 * 2 * 10**9 // 1000}" in message, message
        assert everything(rig) == before
