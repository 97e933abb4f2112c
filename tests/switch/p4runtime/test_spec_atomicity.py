# SPDX-License-Identifier: Apache-2.0
"""Requirements on what is done at once (specification 11, 12.1, 13.4) that no other test shows.

requirements.toml says which test shows what.
"""

from __future__ import annotations

import threading
import time

import grpc
import pytest
from finsy.proto import p4r

from tailrace.p4rt.status import Code
from tailrace.switch.p4runtime import service
from tailrace.switch.p4runtime.device import DeviceSettings
from tests.eventually import eventually
from tests.switch.p4runtime.conftest import TIMEOUT_S, Rig, RigMaker
from tests.switch.p4runtime.long_writes import CELLS, large_counter, writing
from tests.switch.p4runtime.test_externs import counter, modify
from tests.switch.p4runtime.test_tables import mac, read, route

MODIFY, DELETE = p4r.Update.MODIFY, p4r.Update.DELETE
OK = Code.OK


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
    rig = make_rig(settings=DeviceSettings(device_id=1, strict=True), pushed="p4rt_all")
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
    is_torn = False
    while len(seen) < 30 or (not is_torn and time.monotonic() < end):
        first, last = (entity.counter_entry.data.packet_count for entity in rig.read(*ends))
        assert first == last
        seen.add(first)
        with rig.switch.between_packets():
            packets = [rig.switch.counter_cells(index, at, 1)[0][1] for at in (0, CELLS - 1)]
        is_torn = is_torn or packets[0] != packets[1]
    stop.set()
    thread.join()
    return is_torn


def test_batches_of_two_clients_do_not_mix(rig: Rig) -> None:
    """While a long Write is under way, a Write and a Read wait for its end, and are answered as if it had been
    alone (specification 12.2, 13.4).
    """
    large_counter(rig)
    codes: list[Code] = []
    long = [mac(rig, 1), *[modify(counter(rig, None, 1))] * 1000, mac(rig, 2)]
    thread = writing(rig, long, codes)
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
        reads = []
        for _ in range(30):
            ports = {entry.action.SerializeToString() for entry in read(rig, "mac")}
            reads.append(ports)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not refused
    assert all(len(ports) == 1 for ports in reads)
    assert len(set.union(*reads)) > 1


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        (None, None),
        (("MAX_RESPONSE_BYTES", 100_000), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (("READ_S", -1), grpc.StatusCode.ABORTED),
    ],
)
def test_who_reads_slowly_holds_up_no_write(
    rig: Rig,
    limit: tuple[str, int] | None,
    code: grpc.StatusCode | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its answer is kept, and is that of before the Write; where there is no room for it, or it takes too long,
    the Read is refused.
    """
    count = 6000
    assert rig.write(*(mac(rig, number) for number in range(count))) == [OK] * count
    if limit is not None:
        monkeypatch.setattr(service, *limit)
    asked = p4r.ReadRequest(device_id=1)
    asked.entities.extend(
        [p4r.Entity(table_entry=p4r.TableEntry(table_id=rig.names.id("tables", "mac")))] * 4
    )
    call = rig.stub.Read(asked, timeout=TIMEOUT_S)
    assert eventually(lambda: rig.in_server(lambda: rig.server.service._reads) == 1 or code is not None)
    assert rig.write(mac(rig, 0, kind=DELETE)) == [OK]
    if code is None:
        assert sum(len(response.entities) for response in call) == 4 * count
    else:
        with pytest.raises(grpc.RpcError) as caught:
            for _ in call:
                pass
        assert isinstance(caught.value, grpc.Call)
        assert caught.value.code() == code
    monkeypatch.undo()
    assert len(read(rig, "mac")) == count - 1
    assert rig.in_server(lambda: rig.server.service._response_bytes) == 0
    assert not rig.in_server(lambda: rig.server.service._lock._queue)


def test_a_reader_that_goes_leaves_nothing(rig: Rig) -> None:
    """Nor does a Write that waits for it, and goes."""
    count = 2000
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
    while rig.in_server(lambda: rig.server.service._lock._queue) and time.monotonic() < end:
        time.sleep(0.01)
    assert not rig.in_server(lambda: rig.server.service._lock._queue)
    assert rig.in_server(lambda: rig.server.service._response_bytes) == 0
