# SPDX-License-Identifier: Apache-2.0
"""The host port: when a NIC is called, and how its frames follow one another on the wire."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frame_nic import FrameNic
from tests.sim.network.host_rig import NEVER, Rig
from tests.sim.network.l3 import Frame, ListNic

ANSWER_BYTES = 14


@dataclass
class ScriptNic(FrameNic):
    """Sends frames at their times, and as many more as arrivals ask for; notes every call with its time.

    A frame that arrives asks for as many frames as its first byte says.
    """

    script: list[tuple[int, Frame]] = field(default_factory=list)
    calls: list[tuple[str, int]] = field(default_factory=list)
    owed: int = 0
    idle: bool = False

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
        self.calls.append(("on_frame", now_ns))
        self.owed += frame[0]

    def next_frame(self, now_ns: int) -> Frame | None:
        self.calls.append(("next_frame", now_ns))
        if self.owed:
            self.owed -= 1
            return Frame(bytes(ANSWER_BYTES))
        if self.script and self.script[0][0] <= now_ns:
            return self.script.pop(0)[1]
        return None

    def next_time_ns(self, now_ns: int) -> int | None:
        return self.script[0][0] if self.script else None


class Model:
    """What a host does, in Python: the same events, one by one."""

    def __init__(self, nic: ScriptNic, arrivals: list[tuple[int, bytes]], rate_bps: int) -> None:
        self.nic, self.arrivals, self.rate_bps = nic, list(arrivals), rate_bps
        self.free = (0, 0)  # ps, and the remainder
        self.wake: int | None = 0
        self.sent: list[tuple[int, int, bytes, int]] = []

    def run(self) -> None:
        while self.arrivals or self.wake is not None:
            times = [time for time, _ in self.arrivals[:1]] + ([] if self.wake is None else [self.wake])
            now = min(times)
            if self.wake == now:
                self.wake = None
            while self.arrivals and self.arrivals[0][0] == now:
                self.nic.on_frame(now // 1000, self.arrivals.pop(0)[1])
            if now >= self.free[0]:
                self.ask(now)

    def ask(self, now: int) -> None:
        frame = self.nic.next_frame(now // 1000)
        if frame is None:
            time = self.nic.next_time_ns(now // 1000)
            self.wake = None if time is None else max(time, now // 1000 + 1) * 1000
            return
        start, remainder = self.free if self.free[0] == now else (now, 0)
        length = len(frame.data) + frame.virtual_bytes
        duration, remainder = divmod(length * 8 * 10**12 + remainder, self.rate_bps)
        self.free = (start + duration, remainder)
        self.wake = self.free[0]
        self.sent.append((now, self.free[0], frame.data, frame.virtual_bytes))


times_ps = st.lists(st.integers(0, 60_000), max_size=8).map(sorted)
scripts = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40), st.integers(0, 30)), max_size=8).map(
    sorted
)


@settings(max_examples=300)
@given(scripts, times_ps, st.data(), st.sampled_from([8 * 10**9, 4 * 10**11, 7 * 10**9 + 1, 3]))
def test_a_host_does_what_the_model_does(script, times, data, rate_bps):
    """Any script and any arrivals: the same calls at the same times, and the same frames; in any windows."""
    frames = [
        (time, Frame(bytes([number]) * length, virtual))
        for number, (time, length, virtual) in enumerate(script)
    ]
    arrivals = [(time, bytes([data.draw(st.integers(0, 2))])) for time in times]
    nic, other = ScriptNic(list(frames)), ScriptNic(list(frames))
    host, model = Rig(nic, rate_bps=rate_bps), Model(other, arrivals, rate_bps)
    for time, frame in arrivals:
        host.arrive(time, frame)
    host.poll()
    for end in sorted(data.draw(st.lists(st.integers(0, 70_000), max_size=4))):
        host.run(end)
        assert host.next_ps >= end
    host.run()
    model.run()
    assert other.calls == nic.calls
    assert model.sent == host.sent
    assert NEVER == host.next_ps


def test_bytes_at_400_gigabit_last_20_ps():
    """A frame's last bit is there to the picosecond, behind the wire's delay."""
    host = Rig(ListNic([(3, Frame(bytes(101), 4000))]), rate_bps=400_000_000_000, delay_ps=5)
    host.poll()
    host.run()
    assert [(3000, 3000 + 4101 * 20 + 5)] == [sent[:2] for sent in host.sent]


def test_a_new_rate_is_that_of_the_next_frame():
    """A frame that is being sent ends as it began."""
    host = Rig(ListNic([(0, Frame(bytes(100)))] * 2))
    host.poll()
    host.run(1)
    host.set_rate(800_000_000)
    host.run()
    assert [(0, 100_000), (100_000, 1_100_000)] == [sent[:2] for sent in host.sent]


def test_lost_frames_are_not_handed_in():
    """What a fault took counts as an event and as a frame, but the NIC hears nothing."""
    nic = ScriptNic()
    host = Rig(nic)
    host.arrive(500, b"\x01", lost=True)
    assert 1 == host.run()
    assert [] == nic.calls
    assert 500 == host.last_ps


def test_virtual_bytes_arrive():
    """The NIC gets the frame with the length of its virtual payload, at whole ns."""
    nic = ListNic()
    host = Rig(nic)
    host.arrive(1999, b"abc", 4096)
    host.run()
    assert [(1, b"abc", 4096)] == nic.arrived


def test_a_nic_s_clock_does_not_run_back():
    """A poll for a time before that of a timer which the NIC has seen is for that time."""
    nic = ScriptNic([(7, Frame(bytes(20)))])
    host = Rig(nic)
    host.poll()
    host.run(8000)
    nic.script.append((0, Frame(bytes(20))))
    host.poll(3000)
    host.run()
    assert [0, 7, 27] == [time for name, time in nic.calls if name == "next_frame"][:3]
    assert sorted(nic.calls, key=lambda call: call[1]) == nic.calls


def test_idle_is_asked_afresh():
    """Whatever the NIC says now."""
    nic = ScriptNic()
    host = Rig(nic)
    assert not host.idle
    nic.idle = True
    assert host.idle


class Broken(FrameNic):
    """A NIC whose `failing` method raises."""

    idle = True

    def __init__(self, failing: str) -> None:
        self.failing = failing

    def _fail(self, name: str) -> None:
        if name == self.failing:
            raise LookupError(name)

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
        self._fail("on_frame")

    def next_frame(self, now_ns: int) -> None:
        self._fail("next_frame")

    def next_time_ns(self, now_ns: int) -> None:
        self._fail("next_time_ns")


@pytest.mark.parametrize("failing", ["on_frame", "next_frame", "next_time_ns"])
def test_exceptions_come_out(failing):
    """What a NIC raises is raised by the run, and the NIC is free when the host is."""
    nic = Broken(failing)
    host = Rig(nic)
    host.arrive(10, b"x")
    with pytest.raises(LookupError, match=failing):
        host.run()
    gone = weakref.ref(nic)
    del nic, host
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        (object(), AttributeError),
        (SimpleNamespace(data="text", virtual_bytes=0), TypeError),
        (Frame(b"", -1), OverflowError),
        (Frame(b"", 3 << 20), ValueError),
        (Frame(b"", 1 << 70), OverflowError),
    ],
)
def test_frames_that_are_none_are_refused(frame, error):
    """Each with the exception that says why."""
    nic = ScriptNic([(0, frame)])
    host = Rig(nic)
    host.poll()
    with pytest.raises(error):
        host.run()
    assert [] == host.sent


class Hasty(ScriptNic):
    """Has nothing, but says that it has."""

    def __init__(self, said: int) -> None:
        super().__init__()
        self.said = said

    def next_time_ns(self, now_ns: int) -> int | None:
        return self.said


@pytest.mark.parametrize(
    ("said", "woken"), [(-(1 << 80), 1), (0, 1), (5, 5), (1 << 62, None), (1 << 80, None)]
)
def test_times_are_never_in_the_past_nor_beyond_all(said, woken):
    """A time that has passed is the next ns, one that never comes is none."""
    host = Rig(ScriptNic([(said, Frame(b""))]) if said > 0 else Hasty(said))
    host.poll()
    host.run(1)
    assert (NEVER if woken is None else woken * 1000) == host.next_ps


def test_what_is_no_nic_is_refused():
    """At once, by the name of what it lacks."""
    with pytest.raises(AttributeError, match="on_data"):
        Rig(object())


def test_a_nic_cannot_replace_itself():
    """Between runs it can be replaced."""
    arrived: list[str] = []

    class Restless(ScriptNic):
        def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
            arrived.append(self.__class__.__name__)
            host.attach(ScriptNic())

    host = Rig(Restless())
    host.arrive(5, b"x")
    host.arrive(9, b"x")
    with pytest.raises(RuntimeError, match="while it is being called"):
        host.run()
    nic = ScriptNic()
    host.attach(nic)
    host.run()
    assert [("on_frame", 0), ("next_frame", 0)] == nic.calls[:2]
    assert ["Restless"] == arrived
