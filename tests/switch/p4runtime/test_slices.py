# SPDX-License-Identifier: Apache-2.0
"""Nothing that a client asks for holds others up: work is done in slices of bounded size. Counted, not timed."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Callable, Iterator
from functools import cache
from unittest.mock import AsyncMock

import grpc
import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.status import Code, P4RtError
from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.core import externs
from tailrace.switch.p4runtime import scheduler
from tailrace.switch.p4runtime import state as state_module
from tailrace.switch.p4runtime.context import ENTITY, QUANTUM
from tailrace.switch.p4runtime.entities.schema import Schema, build_schema
from tailrace.switch.p4runtime.requests import MAX_ELEMENTS, MAX_PART, parsed_batch
from tailrace.switch.p4runtime.state import ForwardingState, Result
from tests.long import times
from tests.switch.p4runtime import states
from tests.switch.p4runtime.conftest import BUILD, TIMEOUT_S, wildcard
from tests.switch.p4runtime.test_stateful_batches import id_of

INSERT, MODIFY, DELETE = 1, 2, 3
CELLS = 5000
MAX_ENTITIES = QUANTUM // ENTITY


@cache
def program() -> tuple[SwitchProgram, Schema]:
    """p4rt_all with larger arrays."""
    text = json.loads((BUILD / "p4rt_all.json").read_bytes())
    info = p4i.P4Info()
    text_format.Parse((BUILD / "p4rt_all.p4info.txtpb").read_text(), info)
    for array in (*text["register_arrays"], *text["counter_arrays"], *text["meter_arrays"]):
        if array["name"] in ("AllIngress.words", "AllIngress.by_port", "AllIngress.by_class"):
            array["size"] = CELLS
    for entity in (*info.registers, *info.counters, *info.meters):
        if entity.preamble.name in ("AllIngress.words", "AllIngress.by_port", "AllIngress.by_class"):
            entity.size = CELLS
    loaded = load_program(json.dumps(text).encode())
    return loaded, build_schema(info, loaded.model)


@pytest.fixture
def state() -> Iterator[ForwardingState]:
    """A pipeline without a server."""
    made = states.new_state(*program())
    yield made
    made.context.switch.close()


class _Simulated(asyncio.SelectorEventLoop):
    def time(self) -> float:
        return 0.0


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        (asyncio.SelectorEventLoop, [0, 0, pytest.approx(0.01), scheduler.MAX_YIELD_S]),
        (_Simulated, [0, 0, 0, 0]),
    ],
)
def test_others_have_a_part_of_the_time(
    monkeypatch: pytest.MonkeyPatch, loop: Callable[[], asyncio.AbstractEventLoop], expected: list[float]
) -> None:
    """A call takes several rounds of the loop, so that one round after each long slice is not enough; a pause
    in a simulation would make the run depend on the machine.
    """
    clock, pauses, sleep = 0.0, list[float](), asyncio.sleep

    async def pause(time_s: float) -> None:
        pauses.append(time_s)
        await sleep(0)

    async def slices() -> None:
        nonlocal clock
        waiting = scheduler.Scheduler()
        for slice_s in (0.001, 0.008, 0.08, 10):
            clock += slice_s
            await waiting.pause()

    monkeypatch.setattr(scheduler.time, "thread_time", lambda: clock)
    monkeypatch.setattr(scheduler.asyncio, "sleep", pause)
    running = loop()
    running.run_until_complete(slices())
    running.close()
    assert pauses == expected


def entry(number: int, kind: int = INSERT, port: int = 1) -> p4r.Update:
    update = p4r.Update(type=kind)
    message = update.entity.table_entry
    message.table_id = id_of("tables", "mac")
    message.match.add(field_id=1).exact.value = number.to_bytes(6, "big").lstrip(b"\0") or b"\0"
    message.action.action.action_id = id_of("actions", "forward")
    message.action.action.params.add(param_id=1, value=bytes([port]))
    return update


ARRAYS = ("counter_entry", "register_entry", "meter_entry")


@pytest.mark.parametrize("name", [*ARRAYS, "table_entry", "direct_counter_entry", "direct_meter_entry"])
def test_answers_come_in_slices(state: ForwardingState, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No message has more entities than a slice, and no call reads more cells while packets wait."""
    assert not any(states.written(state, [entry(number) for number in range(3000)]))
    held: list[int] = []
    lib = state.context.switch._lib

    class Counting:
        """The core, with an eye on its calls."""

        def __getattr__(self, name: str) -> object:
            call = getattr(lib, name)

            def counted(*arguments: object) -> object:
                held.append(int(str(arguments[3])))
                return call(*arguments)

            return counted if name in ("tr_counter_read", "tr_register_read", "tr_meter_read") else call

    monkeypatch.setattr(state.context.switch, "_lib", Counting())
    results: list[Result] = []
    sizes = [len(m.entities) for m in state.read([wildcard(name)] * 2, results) if m is not None]
    assert results == [None, None]
    assert sum(sizes) >= 2 * 3000
    assert max(sizes) < 2 * MAX_ENTITIES
    assert max(held, default=0) <= MAX_ENTITIES <= externs.MAX_CELLS


def test_what_finds_nothing_yields_too(state: ForwardingState) -> None:
    """A filter that passes nothing looks at no more in a slice than one that passes all."""
    assert not any(states.written(state, [entry(number) for number in range(3000)]))
    asked = wildcard("table_entry")
    asked.table_entry.table_id = id_of("tables", "mac")
    asked.table_entry.controller_metadata = 77
    results: list[Result] = []
    slices = list(state.read([asked] * 10, results))
    assert slices.count(None) >= 10 * 3000 // QUANTUM
    assert len(list(state.read([p4r.Entity()] * 10_000, results))) >= 10_000 * ENTITY // QUANTUM - 1


def test_a_read_has_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """What asks for more is refused before anything is read, with both figures."""
    monkeypatch.setattr(state_module, "MAX_READ_BYTES", 1 << 20)
    state = states.new_state(*program())
    try:
        results: list[Result] = []
        with pytest.raises(P4RtError) as refused:
            list(state.read([wildcard("counter_entry")] * 100, results))
        assert refused.value.code == Code.RESOURCE_EXHAUSTED
        assert str(100 * CELLS) in refused.value.message and str(1 << 20) in refused.value.message
        assert not results
        entities, results = states.answered(state, [wildcard("counter_entry")])
        assert len(entities) == CELLS and results == [None]
        # what is reckoned too low is found out on the way
        for number in range(1000):
            update = entry(number)
            update.entity.table_entry.metadata = bytes(4000)
            assert states.written(state, [update]) == [None]
        with pytest.raises(P4RtError, match="the limit is"):
            list(state.read([wildcard("table_entry")], results))
    finally:
        state.context.switch.close()


@settings(max_examples=times(30, 2))
@given(seed=st.integers(0, 1 << 30))
def test_a_sliced_read_among_writers(seed: int) -> None:
    """What is there all the time is answered once; what comes or goes may be there or not."""
    state = states.new_state(*program())
    try:
        rng = random.Random(seed)
        kept = set(range(0, 4000, 4))
        assert not any(states.written(state, [entry(number) for number in range(2000)]))
        states.written(state, [entry(number) for number in kept if number >= 2000])
        seen: list[int] = []
        for response in state.read([wildcard("table_entry")], []):
            for entity in () if response is None else response.entities:
                if entity.table_entry.table_id == id_of("tables", "mac") and entity.table_entry.match:
                    seen.append(int.from_bytes(entity.table_entry.match[0].exact.value, "big"))
            batch = []
            for _ in range(rng.randrange(300)):
                number = rng.randrange(4000)
                if number not in kept:
                    batch.append(entry(number, rng.choice((INSERT, DELETE))))
                else:
                    batch.append(entry(number, MODIFY, port=2))
            states.written(state, batch)
        assert sorted(number for number in seen if number in kept) == sorted(kept)
        assert set(seen) <= set(range(4000))
    finally:
        state.context.switch.close()


@pytest.mark.parametrize("whole", [False, True])
def test_writes_come_in_slices(state: ForwardingState, whole: bool) -> None:
    """Of entries and of the cells of arrays; a batch that is cut off after a slice takes itself back."""
    batch = [entry(number) for number in range(1000)]
    for name, which in (("register_entry", "words"), ("counter_entry", "by_port")):
        update = p4r.Update(type=MODIFY)
        message = getattr(update.entity, name)
        if name == "register_entry":
            message.register_id, message.data.bitstring = id_of("registers", which), b"\x07"
        else:
            message.counter_id, message.data.packet_count = id_of("counters", which), 9
        batch.append(update)
    results: list[Result] = []
    steps = state.write_all_or_none(batch, results) if whole else state.write(batch, results)
    works = list(steps)
    assert not any(results)
    assert max(works) < 2 * QUANTUM and sum(works) > (1000 + 2 * CELLS) * ENTITY - QUANTUM
    if whole:
        before = [e.SerializeToString() for e in states.answered(state, [wildcard("table_entry")])[0]]
        steps = state.write_all_or_none([entry(number) for number in range(5000, 6000)], results)
        for _ in range(10):
            next(steps)
        steps.close()
        after = [e.SerializeToString() for e in states.answered(state, [wildcard("table_entry")])[0]]
        assert sorted(before) == sorted(after)


def test_a_batch_to_be_taken_back_is_bounded(state: ForwardingState) -> None:
    """Others' writes wait for it."""
    with pytest.raises(P4RtError, match="4096 updates at most, not 5000"):
        states.written(state, [entry(number) for number in range(5000)], whole=True)
    assert not state.tables[id_of("tables", "mac")].entries


@settings(max_examples=60)
@given(
    octets=st.binary(max_size=300), sizes=st.lists(st.integers(0, 3000), max_size=40), cut=st.integers(0, 99)
)
def test_requests_are_parsed_in_parts(octets: bytes, sizes: list[int], cut: int) -> None:
    """With the same outcome as at once; garbage is refused with a canonical code."""
    request = p4r.WriteRequest(device_id=3, role="r")
    request.election_id.low = 7
    for number, size in enumerate(sizes * 20):
        request.updates.add().CopyFrom(entry(number))
        request.updates[-1].entity.table_entry.metadata = bytes(size)
    whole = request.SerializeToString()
    assert parsed_in_parts(whole) == request
    for bad in (octets, whole[: len(whole) * cut // 100] + octets):
        try:
            got = parsed_in_parts(bad)
        except P4RtError as error:
            assert error.code == Code.INVALID_ARGUMENT
        else:
            assert got == p4r.WriteRequest.FromString(bad)


def parsed_in_parts(octets: bytes) -> p4r.WriteRequest:
    return run_at_once(parsed_batch(p4r.WriteRequest, AsyncMock(), octets))


def test_one_part_that_is_too_large() -> None:
    """It could not be parsed but at once."""
    update = entry(1)
    update.entity.table_entry.metadata = bytes(MAX_PART)
    with pytest.raises(P4RtError, match=f"the limit is {MAX_PART}"):
        parsed_in_parts(p4r.WriteRequest(updates=[update]).SerializeToString())


@pytest.mark.parametrize(("kind", "what"), [(p4r.WriteRequest, "updates"), (p4r.ReadRequest, "entities")])
def test_the_elements_of_a_request_are_bounded(kind: type[p4r.WriteRequest], what: str) -> None:
    """A million empty ones are two megabytes: refused with the limit before they are all there; no step has many."""
    octets = bytes([kind.DESCRIPTOR.fields_by_name[what].number << 3 | 2, 0])
    pause = AsyncMock()
    with pytest.raises(P4RtError, match=f"{what}; the limit is {MAX_ELEMENTS}") as refused:
        run_at_once(parsed_batch(kind, pause, octets * (1 << 20)))
    assert refused.value.code == Code.RESOURCE_EXHAUSTED
    assert 64 <= pause.await_count <= 256
    pause.reset_mock()
    run_at_once(parsed_batch(kind, pause, octets * MAX_ELEMENTS))
    assert pause.await_count >= 64


@pytest.mark.parametrize("call", ["read", "write"])
def test_a_request_of_bad_elements(rig, call: str) -> None:
    """All of them fail: how many, and the first, are told."""
    many = 50_000
    with pytest.raises(grpc.RpcError) as refused:
        if call == "read":
            rig.read(*[p4r.Entity()] * many)
        else:
            rig.stub.Write(rig.write_request(*[p4r.Update(type=INSERT)] * many), timeout=TIMEOUT_S)
    assert f"{many} of {many}; the first, number 1: INVALID_ARGUMENT" in (refused.value.details() or "")


def test_others_are_served_meanwhile(rig) -> None:
    """While one client writes and reads, others' requests are answered between their slices."""
    served: list[int] = []
    stub, count = rig.stub, 20_000

    def ask() -> None:
        request = p4r.GetForwardingPipelineConfigRequest(device_id=1)
        request.response_type = p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY
        while not done.is_set():
            stub.GetForwardingPipelineConfig(request, timeout=TIMEOUT_S)
            served.append(1)

    request = rig.write_request(*(entry(number) for number in range(count)))
    done = threading.Event()
    other = threading.Thread(target=ask)
    other.start()
    try:
        with pytest.raises(grpc.RpcError):  # the table holds 16384
            stub.Write(request, timeout=TIMEOUT_S)
        during_write = len(served)
        read = rig.read(*[wildcard("table_entry")] * 5)
        assert len(read) > 5 * 16384
        during_read = len(served) - during_write
    finally:
        done.set()
        other.join()
    assert during_write > 3 and during_read > 3, (during_write, during_read)
