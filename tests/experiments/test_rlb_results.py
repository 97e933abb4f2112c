# SPDX-License-Identifier: Apache-2.0
"""What summaries and metrics say of a lossless network: pauses, warnings, recirculations, CNPs."""

from __future__ import annotations

import pytest
from finsy.proto import p4r
from msgspec import UNSET, json

from tailrace.p4rt import counters, programs
from tailrace.results import summary
from tailrace.results.metrics import measure
from tailrace.results.result import Result
from tests.experiments.virtual import result_of

WORDS = {
    "target": "virtual",
    "transport": "dcqcn",
    "topology": "leaf-spine:leaves=2,spines=4,hosts=12,rate=40Gbps,delay=2us,restricted=h19/1",
    "workload": "paused:size=200KB,load=0.4,duration=60us,pairs=6,servers=5,burst=10,from=60us",
    "pfc": "xoff=256KB,xon=254KB",
}


def recirculated(program: programs.P4Program, cells: dict[int, int]) -> list[p4r.Entity]:
    """What a switch answers: packets in cells of its counter of recirculations."""
    counter = next(item for item in program.p4info.counters if item.preamble.alias == counters.RECIRCULATIONS)
    return [
        p4r.Entity(
            counter_entry=p4r.CounterEntry(
                counter_id=counter.preamble.id,
                index=p4r.Index(index=cell),
                data=p4r.CounterData(packet_count=count),
            )
        )
        for cell, count in cells.items()
    ]


def test_recirculations_are_summed_and_the_most_is_told() -> None:
    """A packet that goes round for the third time is in cell 2; of two switches the most is the larger one."""
    program = programs.load("rlb_drill")
    first = counters.sums(program, counters.cells(program, recirculated(program, {0: 10, 1: 4, 2: 1, 3: 0})))
    other = counters.sums(program, counters.cells(program, recirculated(program, {0: 5})))
    assert (first["recirculations"], first["recirculations_most"]) == (15, 3)
    assert (other["recirculations"], other["recirculations_most"]) == (5, 1)
    totals = summary.recirculations({"s1": first, "s2": other}, 200)
    assert totals == summary.Recirculations(total=20, mean=0.1, most=3)
    assert summary.recirculations({"s1": {"port_tx": 1}}, 200) is UNSET


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    """A receiver that is congested, and pairs beside it: by a selector alone and with RLB."""
    schemes = {"alone": "presto", "rlb": "rlb:variant=presto,limit=fixed,most=3"}
    return {label: result_of({**WORDS, "scheme": scheme}, label=label) for label, scheme in schemes.items()}


def test_summary_has_what_was_observed(results: dict[str, Result]) -> None:
    """Pauses and CNPs of both, warnings and recirculations only where a program has them."""
    alone, rlb = results["alone"].summary, results["rlb"].summary
    for scheme_summary in (alone, rlb):
        assert isinstance(scheme_summary.pfc, dict) and isinstance(scheme_summary.dcqcn, dict)
        assert 0 < scheme_summary.pfc["pauses"] <= scheme_summary.pfc["frames"]
        assert 0 < scheme_summary.dcqcn["cnps_received"] <= scheme_summary.dcqcn["cnps_sent"]
    assert (alone.rlb, alone.recirculations) == (UNSET, UNSET)
    assert isinstance(rlb.rlb, dict) and isinstance(rlb.recirculations, summary.Recirculations)
    assert rlb.rlb["warnings_sent"] > 0
    assert rlb.recirculations.most <= 3
    document = json.decode(json.encode(alone))
    assert "rlb" not in document and "recirculations" not in document


def test_metrics_of_a_class_are_those_of_its_packets(results: dict[str, Result]) -> None:
    """The pairs' share of packets out of order is counted from their own rows, not from the bursts'."""
    for result in results.values():
        metrics = measure(result)
        monitored = [row for row in result.rows if row.flow_class == "monitored"]
        share = sum(row.out_of_order for row in monitored) / sum(row.first_received for row in monitored)
        assert metrics["out_of_order_share_of_monitored"] == pytest.approx(share)
        assert metrics["out_of_order_share_of_monitored"] != pytest.approx(metrics["out_of_order_share"])
        delivered = sum(row.received for row in result.rows)
        assert metrics["pauses"] / delivered == pytest.approx(metrics["pauses_per_packet"])
        assert "pauses_of_monitored" not in metrics
        assert metrics["ood_p99"] == max(row.ood_max for row in monitored), (
            "of fewer than a hundred flows the largest"
        )
