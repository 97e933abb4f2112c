# SPDX-License-Identifier: Apache-2.0
"""A batch that fails leaves nothing, whatever others have taken in the meantime and whatever goes wrong."""

from __future__ import annotations

import grpc
import pytest
from finsy.proto import p4r

from tailrace.p4rt.status import Code
from tailrace.switch.core import StateError, V1ModelSwitch
from tailrace.switch.p4runtime import state as state_module
from tailrace.switch.p4runtime.context import finish
from tailrace.switch.p4runtime.state import ForwardingState, Result
from tests.switch.p4runtime.conftest import TIMEOUT_S, Rig, everything_of
from tests.switch.p4runtime.test_tables import mac, read, route
from tests.switch.p4runtime.test_transactions import everything, populate

DELETE = p4r.Update.DELETE
OK = Code.OK
KINDS = (
    *("table_entry", "action_profile_group", "action_profile_member"),
    *("packet_replication_engine_entry", "digest_entry"),
)


def state_of(rig: Rig) -> ForwardingState:
    live = rig.device._live
    assert live is not None
    return live.state


def all_deleted(rig: Rig) -> list[p4r.Update]:
    """The updates that delete all that can be deleted."""
    entities = [entity for entity in rig.read(*everything_of(*KINDS)) if not entity.table_entry.is_const]
    return [p4r.Update(type=DELETE, entity=entity) for entity in entities]


def large_route(rig: Rig, number: int) -> p4r.Update:
    update = route(rig, b"\x0a\0" + number.to_bytes(2, "big"), 32)
    update.entity.table_entry.metadata = bytes(4096)
    return update


def test_what_others_take_meanwhile_is_no_hindrance(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory that a batch has freed is full of another client's entries when all of it has to come back."""
    monkeypatch.setattr(state_module, "QUANTUM", 1)
    populate(rig)
    before = everything(rig)
    memory = rig.device.memory
    memory.limit = used = rig.in_server(lambda: memory.used)
    state, batch, results = state_of(rig), all_deleted(rig), list[Result]()
    assert len(batch) > 40
    taken: list[p4r.Update] = []

    def run() -> None:
        steps = state.write_all_or_none([*batch, mac(rig, 999, kind=DELETE)], results)
        for _ in batch:
            next(steps)
        assert not state.tables[rig.names.id("tables", "mac")].entries
        while True:
            update = large_route(rig, len(taken))
            error = finish(state.apply(update, None))
            if error is not None:
                assert error.code == Code.RESOURCE_EXHAUSTED
                break
            taken.append(update)
        for _ in steps:
            pass

    rig.in_server(run)
    assert [None if result is None else result.code for result in results] == [
        *[Code.ABORTED] * len(batch),
        Code.NOT_FOUND,
    ]
    assert len(taken) > 3
    assert set(before) <= set(everything(rig)) and len(everything(rig)) == len(before) + len(taken)
    # nobody takes more until there is room again
    assert rig.in_server(lambda: memory.used) > memory.limit
    assert rig.write(mac(rig, 999)) == [Code.RESOURCE_EXHAUSTED]
    deletions = [p4r.Update(type=DELETE, entity=insertion.entity) for insertion in taken]
    assert rig.write(*deletions) == [OK] * len(deletions)
    assert rig.in_server(lambda: memory.used) == used
    assert everything(rig) == before


def test_one_step_that_fails_keeps_no_other(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The client reads that something is left, the log what, and all else is as it was."""
    numbers = range(1, 11)
    assert rig.write(*(mac(rig, number) for number in numbers)) == [OK] * 10
    inserts, insert = [0], V1ModelSwitch.table_insert

    def fail_once(*arguments: object, **more: object) -> int:
        inserts[0] += 1
        if inserts[0] == 4:
            raise StateError("memory", "no more\nof it")
        return insert(*arguments, **more)

    request = rig.write_request(
        *(mac(rig, number, kind=DELETE) for number in numbers), mac(rig, 99, kind=DELETE), atomicity=1
    )
    with monkeypatch.context() as patched:
        patched.setattr(V1ModelSwitch, "table_insert", fail_once)
        with pytest.raises(grpc.RpcError) as caught:
            rig.stub.Write(request, timeout=TIMEOUT_S)
    assert isinstance(caught.value, grpc.Call)
    assert caught.value.code() == grpc.StatusCode.INTERNAL
    assert caught.value.details() == "1 changes of a failed batch are not rolled back; see the switch's log"
    (record,) = [r for r in caplog.records if r.levelname == "ERROR"]
    assert "no more of it" in record.getMessage()
    left = {entry.match[0].exact.value[0] for entry in read(rig, "mac")}
    assert left == set(numbers) - {7}  # the last deletion is taken back first
    assert rig.write(mac(rig, 7)) == [OK]
