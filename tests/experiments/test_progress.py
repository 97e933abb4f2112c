# SPDX-License-Identifier: Apache-2.0
"""Progress: a bar on a terminal, two lines elsewhere, nothing when quiet."""

from __future__ import annotations

import io
import time

import pytest

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.sim.outcome import STOPPED, Progress
from tailrace.sim.run import VirtualBackend
from tailrace.study.progress import Display


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(display: Display) -> None:
    with display.run("it") as report:
        report(Progress("traffic", 1, 4, 0.25, 1_500, 1000))
        report(Progress("traffic", 4, 4, 1.0, 12_500, 250_000))


def test_lines() -> None:
    """That it began, and in the end flows, virtual time and events a second."""
    out = io.StringIO()
    run(Display(out))
    first, last = out.getvalue().splitlines()
    assert first == "it ..."
    assert last.startswith("it: 4 of 4 flows, ")
    assert "12.5 µs virtual, " in last
    assert last.endswith(" events/s")


def test_a_stop_takes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the time that a run took, nor in its rate."""
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    out = io.StringIO()
    with Display(out).run("it") as report:
        report(Progress("traffic"))
        now_s += 2
        for _ in range(2):
            report(Progress(STOPPED, 0, 4, 0.0, 1_500, 1000))
            now_s += 500
        report(Progress("traffic", 0, 4, 0.0, 1_500, 1000))
        now_s += 2
        report(Progress("traffic", 4, 4, 1.0, 12_500, 4000))
    assert out.getvalue().splitlines()[-1] == "it: 4 of 4 flows, 4.0 s, 12.5 µs virtual, 1.0k events/s"


def test_the_rate_of_events_is_that_of_the_traffic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it, programs are compiled."""
    now_s = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    out = io.StringIO()
    with Display(out).run("it") as report:
        report(Progress("starting"))
        now_s += 8
        report(Progress("traffic"))
        now_s += 2
        report(Progress("traffic", 4, 4, 1.0, 12_500, 250_000))
    assert out.getvalue().endswith("10.0 s, 12.5 µs virtual, 125.0k events/s\n")


def test_a_run_reports_when_its_traffic_begins() -> None:
    seen: list[Progress] = []
    planned = plan(make({"scheme": "ecmp", "workload": "permutation:size=1KiB", "flows": 2}), "virtual")
    VirtualBackend().run(planned.job, seen.append)
    assert [(each.phase, each.virtual_ns) for each in seen[:2]] == [("starting", None), ("traffic", None)]


@pytest.mark.parametrize("columns", [80, 120])
def test_bar(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Flows, virtual time, and how long it takes; events a second where there is room."""
    monkeypatch.setenv("COLUMNS", str(columns))
    out = Terminal()
    run(Display(out))
    shown = out.getvalue()
    for text in ("4/4 flows", "12.5 µs virtual", "0:00:00"):
        assert text in shown
    assert ("events/s" in shown) == (columns == 120)


def test_notes() -> None:
    """What has happened is a line by itself, and changes nothing of the rest."""
    for out in (io.StringIO(), Terminal()):
        with Display(out).run("it") as report:
            report(Progress("traffic", 1, 4, 0.25, 1_500, 1000))
            report(Progress("traffic", note="leaf1: failure alert"))
        lines = [line.rstrip() for line in out.getvalue().splitlines()]
        assert any("leaf1: failure alert" in line for line in lines)
        if not out.isatty():
            assert lines[1] == "leaf1: failure alert"
            assert lines[2].startswith("it: 1 of 4 flows, ")


def test_what_nobody_knows_is_left_out() -> None:
    """Real time has no virtual clock."""
    out = io.StringIO()
    with Display(out).run("it") as report:
        report(Progress("traffic", 2, 4))
    assert out.getvalue().splitlines()[-1].startswith("it: 2 of 4 flows, ")
    assert "virtual" not in out.getvalue()


def test_count() -> None:
    """A line a thing, or a bar."""
    for out in (io.StringIO(), Terminal()):
        with Display(out).count("runs", 2) as done:
            done("one")
            done("two")
        assert "two" in out.getvalue()
        assert ("2 of 2 runs: two" in out.getvalue()) == (not out.isatty())


def test_silent(capfd: pytest.CaptureFixture[str]) -> None:
    """Without a file nothing is written anywhere."""
    display = Display(None)
    run(display)
    with display.count("runs", 1) as done:
        done("one")
    display.say("nothing")
    display.warn("nothing either")
    assert capfd.readouterr() == ("", "")


class Gone(Terminal):
    """A terminal, or a pipe's other end, that goes away."""

    def __init__(self, *, tty: bool) -> None:
        super().__init__()
        self.tty = tty

    def isatty(self) -> bool:
        return self.tty

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    def flush(self) -> None:
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("tty", [False, True])
def test_what_cannot_be_told_ends_no_run(*, tty: bool) -> None:
    """Results are worth more than lines about them."""
    display = Display(Gone(tty=tty))
    run(display)
    display.warn("it may be wrong")
    with display.count("runs", 1) as advance:
        advance("it")


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_names_command_no_terminal(kind: type[io.StringIO]) -> None:
    """Names of runs come from files of others."""
    out = kind()
    display = Display(out)
    name = "\x1b]0;owned\x07"
    with display.run(name) as report:
        report(Progress("traffic", note=name))
    with display.count("runs", 1) as advance:
        advance(name)
    display.say(f"{name}\n{name}")
    assert "\x1b]" not in out.getvalue()
    assert "\x07" not in out.getvalue()
    assert "\\x1b]0;owned\\x07" in out.getvalue()
