# SPDX-License-Identifier: Apache-2.0
"""What is said before runs: how long they will take in real time."""

from __future__ import annotations

import io

import pytest

from tailrace.experiments.plan.experiment import of_settings
from tailrace.experiments.plan.plan import Plan, plan
from tailrace.hosts import compiled
from tailrace.hosts.options.transport import TRANSPORTS
from tailrace.schemes.registry import SCHEMES
from tailrace.study import prepare
from tailrace.study.prepare import MANY_PACKETS, estimated_s, report_nics, report_runs, report_transports
from tailrace.study.progress import Display

LEAF_SPINE = "leaf-spine:leaves=2,spines=4,hosts=4,rate=10Gbps,delay=1us"
SWITCHES = 6


def planned(target: str, time_scale: float, workload: str = "permutation:size=512KiB,peers=remote") -> Plan:
    settings = {"topology": LEAF_SPINE, "workload": workload, "scheme": "ecmp", "time_scale": time_scale}
    return plan(of_settings(settings), target)


def line_of(plans: list[Plan], seeds: tuple[int, ...] = (1,)) -> str:
    out = io.StringIO()
    report_runs([("ecmp", each) for each in plans], seeds, Display(out))
    return out.getvalue()


@pytest.mark.parametrize("target", ["bmv2", "native"])
def test_an_estimate_follows_the_last_flow(target: str) -> None:
    """512 KiB take 0.46 ms on 10 Gbps with their headers; four times as long, ten thousand times slower."""
    assert estimated_s(planned(target, 10_000)) == pytest.approx(SWITCHES + 4 * 4.6, rel=0.05)
    late = planned(target, 10_000, "poisson:size=1KiB,load=0.5,duration=5ms")
    last_ns = max(flow.start_ns for flow in late.job.flows)
    assert last_ns > 45e9
    assert estimated_s(late) == pytest.approx(SWITCHES + last_ns / 1e9, rel=0.01)


def test_the_estimate_is_of_all_runs_and_seeds() -> None:
    plans = [planned("bmv2", 10_000)] * 5
    assert line_of(plans).endswith("; about 2 min on an otherwise idle machine\n")
    assert line_of(plans, (1, 2, 3)).startswith("15 runs: ecmp; clean; each with the seeds ")
    assert line_of(plans, (1, 2, 3)).endswith("; about 6 min on an otherwise idle machine\n")
    assert line_of(plans[:1]).endswith("; about 1 min on an otherwise idle machine\n")


@pytest.mark.parametrize(
    ("scheme", "transport", "hint"),
    [
        ("rlb", None, "it: over gbn, but made for dcqcn: --transport dcqcn\n"),
        ("rlb:variant=hermes", None, ""),
        ("rlb", "dcqcn", ""),
        ("spray", "gbn", "it: over gbn, but made for sr or dctcp: --transport sr\n"),
        ("spray", "dctcp", ""),
        ("ecmp", "gbn", ""),
    ],
)
def test_the_transport_for_which_a_scheme_is_made(scheme: str, transport: str | None, hint: str) -> None:
    settings = {"topology": LEAF_SPINE, "scheme": scheme} | ({"transport": transport} if transport else {})
    out, chosen = io.StringIO(), of_settings(settings)
    report_transports(chosen, [("it", plan(chosen, "virtual"))], Display(out))
    assert out.getvalue() == hint


def test_transports_exist() -> None:
    made_for = [name for entry in SCHEMES for name in entry.struct.made_for]
    assert made_for
    assert all(TRANSPORTS.entry(name).name == name for name in made_for)


def test_virtual_time_has_no_estimate() -> None:
    assert line_of([planned("virtual", 1)]) == "1 runs: ecmp; clean\n"


@pytest.mark.parametrize(
    ("target", "packets", "implementation", "warned"),
    [
        ("virtual", MANY_PACKETS, "interpreted", True),
        ("virtual", MANY_PACKETS - 1, "interpreted", False),
        ("virtual", MANY_PACKETS, "compiled", False),
        ("native", MANY_PACKETS, "interpreted", False),
    ],
)
def test_interpreted_nics_are_a_warning_where_they_take_seconds(
    monkeypatch: pytest.MonkeyPatch, target: str, packets: int, implementation: str, warned: bool
) -> None:
    """In virtual time, with many packets."""
    monkeypatch.setattr(prepare, "IMPLEMENTATION", implementation)
    monkeypatch.setattr(compiled, "why_interpreted", lambda: "why")
    out = io.StringIO()
    report_nics(target, Display(out), packets)
    assert out.getvalue() == ("warning: why\n" if warned else "")
