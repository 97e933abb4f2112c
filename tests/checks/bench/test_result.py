# SPDX-License-Identifier: Apache-2.0
"""The table of results, the statistics in it, and what is said of a machine that was not quiet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.bench.noise import Noise, alternating, processor_s, remark
from checks.bench.result import WIDTH, BenchResult, Rival, spread, table

QUIET = Noise(0.0, 0.0, 0.1)
LOUD = Noise(0.5, 0.1, 2.0)


def test_table_groups_and_verdicts() -> None:
    """A heading for each group; a goal is shown with whether it was met, on the side that counts."""
    text = table(
        [
            BenchResult("speed", "fast", 6e6, "packets/s", goal=5e6),
            BenchResult("speed", "slow", 4e6, "packets/s", goal=5e6),
            BenchResult("size", "small", 0.04, "s", goal=0.05, better="less", note="cached"),
            BenchResult("size", "plain", 12.5, "KiB"),
        ]
    )
    lines = text.splitlines()
    assert lines[0].split() == ["speed", "figure", "spread", "goal", "rival"]
    assert lines[1].split() == ["fast", "6.00M", "packets/s", ">=5.00M", "yes"]
    assert lines[2].split() == ["slow", "4.00M", "packets/s", ">=5.00M", "NO"]
    assert lines[4].split()[0] == "size"
    assert lines[5].split() == ["small", "0.04", "s", "<=0.05", "yes"]
    assert lines[6].split() == ["cached"]
    assert lines[7].split() == ["plain", "12.5", "KiB"]


def test_loud_rounds_are_marked_and_told() -> None:
    """A figure of which a round was loud has a mark, and the end says how loud it was at most."""
    lines = table(
        [
            BenchResult("g", "calm", 2.0, "s", runs=(1.0, 2.0, 3.0), noise=(QUIET, QUIET)),
            BenchResult("g", "loud", 2.0, "s", runs=(1.9, 2.0, 2.1), noise=(QUIET, LOUD)),
        ]
    ).splitlines()
    assert lines[1].split()[-1] == "±50%"
    assert lines[2].split()[-1] == "±5%!"
    assert " ".join(lines[-2:]) == (
        "! the machine was not quiet in 1 of 4 measurements: others took up to 0.50   cores, 0.10 were stolen, load 2.0"
    )
    assert remark([QUIET]) == ""
    assert table([BenchResult("g", "calm", 2.0, "s", noise=(QUIET,))]).count("!") == 0


@given(
    name=st.text("ab, ", min_size=1, max_size=70),
    value=st.floats(0, 1e11),
    goal=st.none() | st.floats(0, 1e9),
    note=st.text("word ", max_size=200),
    runs=st.lists(st.floats(0.1, 1e3), max_size=4),
    rival=st.none() | st.builds(Rival, st.text("them ", max_size=120), st.none() | st.floats(0, 1e9)),
)
def test_no_line_is_wider_than_a_terminal(
    name: str, value: float, goal: float | None, note: str, runs: list[float], rival: Rival | None
) -> None:
    """Whatever a result says."""
    result = BenchResult("group", name, value, "packets/s", goal, note=note, runs=tuple(runs), rival=rival)
    lines = table([result, BenchResult("group", "next", 1.0, "entries/s", noise=(LOUD,))]).splitlines()
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.parametrize(
    ("runs", "share"), [((4.0,), 0.0), ((3.0, 4.0, 5.0), 0.25), ((0.0, 0.0, 0.0), 0.0), ((1, 2, 2, 3), 0.5)]
)
def test_spread(runs: tuple[float, ...], share: float) -> None:
    """Half of what lies between the ends, by the median."""
    assert spread(runs) == share


def test_processor_time_is_read_from_proc_stat() -> None:
    """user, nice and system are processes'; iowait, interrupts and idle are nobody's; steal apart. In ticks of
    a hundredth.
    """
    stat = "cpu  100 20 30 4000 500 6 7 80 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nctxt 9\n"
    assert processor_s(stat) == (1.5, 0.8)


def test_rounds_alternate() -> None:
    """Every task once before any of them again."""
    order: list[str] = []

    def task(name: str) -> int:
        order.append(name)
        return len(order)

    samples = alternating({"a": lambda: task("a"), "b": lambda: task("b")}, 3)
    assert order == ["a", "b"] * 3
    assert [each.value for each in samples["b"]] == [2, 4, 6]
    assert all(each.noise.other_cpu >= 0 for each in samples["a"])
