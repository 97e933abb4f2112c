# SPDX-License-Identifier: Apache-2.0
"""RLB §III-B.1: the compiled predictor against the model, fed with the same queue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.p4src.frames import roce
from tests.p4src.rig import HOST, HOST_PORT, REMOTE, UPLINKS
from tests.rlb.models import Predictor
from tests.rlb.rig import FOREVER, OWN_LEAF, RlbRig, cnms

STEP = 1000  # lengths are multiples, and arrivals have all remainders: so nothing happens at one time
NS_A_BYTE_BPS = 8_000_000_000
FROM = UPLINKS[0]
FRAME = roce(src=REMOTE, dst=HOST)
SEEN_VALID = 12_345
Arrival = tuple[int, int]
"""Time in STEPs since the last one, and length in STEPs."""


@dataclass
class Queue:
    """What comes in at one port waits for one host, whose link takes a nanosecond a byte."""

    judge: Predictor
    now: int = 0
    free_at: int = 0
    waiting: list[tuple[int, int]] = field(default_factory=list)  # when it leaves the queue, bytes
    warnings: list[tuple[int, int]] = field(default_factory=list)  # time, valid ticks
    levels: list[tuple[int, int]] = field(default_factory=list)  # time, bytes

    def level(self) -> int:
        return sum(size for _, size in self.waiting)

    def leave_until(self, now: int) -> None:
        while self.waiting and self.waiting[0][0] <= now:
            at, _ = self.waiting.pop(0)
            self.levels.append((at, self.level()))
            change = self.judge.departure(at, self.level())
            if change:
                self.warnings.append((at, SEEN_VALID if change == "warn" else 0))

    def arrive(self, now: int, size: int) -> None:
        self.leave_until(now)
        leaves = max(now, self.free_at)
        self.free_at = leaves + size
        self.waiting.append((leaves, size))
        self.levels.append((now, self.level()))
        if self.judge.arrival(now, self.level()):
            self.warnings.append((now, SEEN_VALID))
        self.leave_until(now)


@pytest.fixture(scope="module")
def leaf() -> Iterator[RlbRig]:
    with RlbRig() as rig:
        rig.switch.port_config(HOST_PORT, rate_bps=NS_A_BYTE_BPS)
        yield rig


def run(rig: RlbRig, judge: Predictor, arrivals: list[Arrival]) -> tuple[Queue, list[tuple[int, int]]]:
    """The same trace through both; what each says by the port, with times."""
    rig.reset()
    rig.warnings(
        dt_ticks=judge.dt,
        warn_bytes=judge.warn,
        pause_bytes=judge.pause,
        margin_ticks=judge.margin,
        threshold_alone=int(judge.threshold_alone),
        refresh_ticks=judge.refresh,
        valid_ticks=SEEN_VALID,
    )
    queue, outputs = Queue(judge), []
    now = rig.clock // STEP * STEP + STEP
    queue.free_at = now
    for remainder, (gap, length) in enumerate(arrivals, 1):
        now += gap * STEP
        at = now + remainder
        queue.arrive(at, length * STEP)
        rig.switch.run(at - 1)
        rig.switch.inject(FROM, bytes(FRAME), at, virtual_bytes=length * STEP - len(FRAME))
        rig.switch.run(at)
        outputs += rig.switch.outputs()
    end = now + 10_000 * STEP
    queue.leave_until(end)
    rig.switch.run(end)
    outputs += rig.switch.outputs()
    rig.clock = end
    assert rig.empty()
    warnings = cnms(outputs, FROM)
    for _, message in warnings:
        assert (message.port, message.leaf, message.hops, message.priority) == (FROM, OWN_LEAF, 0, 0)
    return queue, [(time, message.valid_ticks) for time, message in warnings]


traces = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 9)), min_size=1, max_size=40)


@settings(max_examples=30)
@given(
    traces,
    st.integers(1, 5000),
    st.integers(1, 30),
    st.integers(1, 60),
    st.integers(0, 40_000),
    st.sampled_from([0, 3000, 20_000, FOREVER]),
    st.booleans(),
)
@example([(1, 9)] * 10 + [(9, 1)] * 20 + [(1, 9)] * 10, 2000, 10, 40, 8000, 3000, False)
@example([(1, 9)] * 10 + [(9, 1)] * 20 + [(1, 9)] * 10, 2000, 10, 40, 8000, 3000, True)
def test_program_and_model_say_the_same(leaf, arrivals, dt, warn, more, margin, refresh, alone):
    """Every warning and withdrawal, at the same nanosecond; by growth, and by Q_th alone."""
    judge = Predictor(dt, warn * STEP, (warn + more) * STEP, margin, refresh, alone)
    queue, seen = run(leaf, judge, arrivals)
    assert seen == queue.warnings


@settings(max_examples=8)
@given(st.integers(2, 9), st.integers(1, 4), st.integers(5, 20))
def test_warning_comes_before_the_pause(leaf, length, gap, warn):
    """A queue that grows steadily is warned of before it is at Q_PFC, given margin for two samples."""
    if length <= gap:
        length = gap + 1
    dt, pause = 2 * gap * STEP, (warn + 12 * length) * STEP
    judge = Predictor(dt, warn * STEP, pause, 3 * dt, FOREVER)
    queue, seen = run(leaf, judge, [(gap, length)] * 120)
    at_pause = [time for time, level in queue.levels if level >= pause]
    if at_pause:
        assert seen
        assert seen[0][0] < at_pause[0]
        assert seen[0][1] == SEEN_VALID


@settings(max_examples=8)
@given(st.integers(40, 80), st.integers(1, 5), st.integers(1, 4000))
def test_no_warning_begins_while_the_queue_drains(leaf, burst, gap, dt):
    """A queue far above Q_PFC that gets half of what leaves it is not warned of, however it is sampled."""
    pause = 25 * STEP
    leaf.reset()
    leaf.warnings()
    now = leaf.clock // STEP * STEP + STEP
    trace = [(now + i, STEP) for i in range(burst)]
    trickle = [(now + burst + 2 * gap * STEP * i, gap * STEP) for i in range(1, 41)]
    for at, size in trace:
        leaf.send(FROM, FRAME, at, virtual_bytes=size - len(FRAME))
    full = leaf.source_load(FROM)
    assert full >= pause
    leaf.set_register("sample_bytes", FROM, full)
    leaf.set_register("sample_ticks", FROM, now + burst)
    leaf.warnings(dt_ticks=dt, warn_bytes=20 * STEP, pause_bytes=pause, margin_ticks=FOREVER, refresh_ticks=0)
    before = leaf.total("warnings_sent")
    for at, size in trickle:
        leaf.send(FROM, FRAME, at, virtual_bytes=size - len(FRAME))
    assert leaf.total("warnings_sent") == before
    leaf.clock = at + (burst + gap) * STEP
    leaf.switch.run(leaf.clock)
    leaf.switch.outputs()
    assert leaf.empty()


def test_threshold_alone_needs_no_growth(leaf):
    """A queue that is above Q_th and drains: §V warns of it, §III-B.1 does not; of Q_th itself neither does."""
    warned = []
    for alone, most in ((0, 3 * STEP), (1, 3 * STEP), (1, 4 * STEP)):
        leaf.reset()
        leaf.warnings()
        now = leaf.clock // STEP * STEP + STEP
        for i in range(5):
            leaf.send(FROM, FRAME, now + i, virtual_bytes=STEP - len(FRAME))
        leaf.set_register("sample_bytes", FROM, 9 * STEP)
        leaf.warnings(
            threshold_alone=alone, dt_ticks=1, warn_bytes=most, pause_bytes=9 * STEP, margin_ticks=FOREVER
        )
        # one is being sent, one has left: with this one four wait
        before = leaf.total("warnings_sent")
        leaf.send(FROM, FRAME, now + STEP + 9, virtual_bytes=STEP - len(FRAME))
        assert leaf.source_load(FROM) == 4 * STEP
        warned.append(leaf.total("warnings_sent") - before)
        leaf.clock = now + 100 * STEP
        leaf.switch.run(leaf.clock)
        leaf.switch.outputs()
    assert warned == [0, 1, 0]


def test_hosts_are_not_told(leaf):
    """What comes from a host pauses a host, and no CNM goes there."""
    leaf.reset()
    leaf.warnings(dt_ticks=1, warn_bytes=1, pause_bytes=2, margin_ticks=FOREVER)
    now = leaf.clock + STEP
    outputs = [out for i in range(9) for out in leaf.send(HOST_PORT, roce(), now + i)]
    assert len(outputs) == 9
    assert leaf.register("sample_ticks", HOST_PORT) == 0
    leaf.clock = now + 9


def test_warning_goes_in_front_of_data(leaf):
    """On its way back it waits for the frame that is being sent, and for no other."""
    leaf.reset()
    leaf.warnings(dt_ticks=1, warn_bytes=1, pause_bytes=2, margin_ticks=FOREVER, valid_ticks=SEEN_VALID)
    leaf.switch.port_config(FROM, rate_bps=NS_A_BYTE_BPS)
    now = leaf.clock + STEP
    outputs = []
    for i in range(3):
        leaf.next_slot(0)
        outputs += leaf.send(HOST_PORT, roce(), now + i, virtual_bytes=STEP)
    for i in range(3, 6):
        outputs += leaf.send(FROM, FRAME, now + i, virtual_bytes=STEP)
    leaf.clock = now + 100 * STEP
    leaf.switch.run(leaf.clock)
    leaf.switch.port_config(FROM, rate_bps=0)
    outputs += leaf.switch.outputs()
    kinds = [bool(cnms([output], FROM)) for output in outputs if output.port == FROM]
    assert kinds[:2] == [False, True]
    assert kinds.count(False) == 3
    assert leaf.empty()


def test_dt_zero_predicts_nothing(leaf):
    """The program as it is before the controller has configured it."""
    judge = Predictor(1, STEP, 2 * STEP, FOREVER, 0)
    judge.dt = 0
    leaf.reset()
    _, seen = run(leaf, judge, [(1, 9)] * 20)
    assert seen == []
