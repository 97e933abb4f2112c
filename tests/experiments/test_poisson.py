# SPDX-License-Identifier: Apache-2.0
"""Poisson arrivals: gaps, load and receivers are what they should be."""

from __future__ import annotations

import math
import random

import pytest

from tailrace.experiments.workloads.poisson import exponential
from tailrace.experiments.workloads.sizes import find_cdf
from tailrace.experiments.workloads.workload import parse_workload
from tailrace.topology import parse_topology
from tests.experiments.test_size_cdf import CERTAIN, mean_square

RATE_BPS = 10_000_000_000
FABRIC = parse_topology("leaf-spine:leaves=3,spines=2,hosts=4,rate=10Gbps")
DURATION_NS = 200_000_000


def test_exponential() -> None:
    """The numbers follow 1 - e^-x, within the bound of Dvoretzky, Kiefer and Wolfowitz."""
    rng = random.Random(1)
    count = 20_000
    bound = math.sqrt(math.log(2 / CERTAIN) / (2 * count))
    for rank, number in enumerate(sorted(exponential(rng) for _ in range(count))):
        expected = 1 - math.exp(-number)
        assert rank / count - bound <= expected <= (rank + 1) / count + bound


@pytest.mark.parametrize("load", [0.2, 1.0])
@pytest.mark.parametrize("sizes", ["cdf=webserver", "size=20KB"])
def test_load_of_a_long_run(load: float, sizes: str) -> None:
    """All hosts together, and each one, ask for their share of the link rate: within 6 standard errors.

    The bytes of a compound Poisson process with n expected flows have the variance n * E[size^2].
    """
    words = f"poisson:{sizes},load={load},duration={DURATION_NS}ns"
    made = parse_workload(words).traffic(FABRIC, random.Random(5)).flows
    square = mean_square(find_cdf("webserver")) if "cdf" in sizes else 20_000.0**2
    mean = find_cdf("webserver").mean_bytes if "cdf" in sizes else 20_000.0
    expected = load * RATE_BPS / 8 * DURATION_NS / 1e9
    for hosts in [list(FABRIC.hosts), *([host] for host in FABRIC.hosts)]:
        sent = sum(flow.bytes for flow in made if flow.src in {host.ip for host in hosts})
        wanted = expected * len(hosts)
        assert abs(sent - wanted) < 6 * math.sqrt(wanted / mean * square)


def test_arrivals_of_one_host_are_poisson() -> None:
    """Counts in slots of one host: their mean and their variance are equal, as for no other such process."""
    made = (
        parse_workload(f"poisson:size=20KB,load=0.5,duration={DURATION_NS}ns")
        .traffic(FABRIC, random.Random(2))
        .flows
    )
    assert [flow.start_ns for flow in made] == sorted(flow.start_ns for flow in made)
    assert max(flow.start_ns for flow in made) < DURATION_NS
    slots = 1000
    counts = [0] * slots
    for flow in made:
        if flow.src == FABRIC.hosts[0].ip:
            counts[flow.start_ns * slots // DURATION_NS] += 1
    mean = 0.5 * RATE_BPS / 8 * DURATION_NS / 1e9 / 20_000 / slots
    assert abs(sum(counts) / slots - mean) < 6 * math.sqrt(mean / slots)
    variance = sum((count - mean) ** 2 for count in counts) / slots
    # the variance of (N - m)^2 for a Poisson number N with mean m is m + 2 m^2
    assert abs(variance - mean) < 6 * math.sqrt((mean + 2 * mean**2) / slots)


def test_faster_hosts_send_more() -> None:
    """The load is that of each host's own link: ten times the rate, ten times the flows."""
    words = "poisson:size=1KB,load=0.5,duration=1ms"
    slow, fast = (
        len(
            parse_workload(words)
            .traffic(
                parse_topology(f"leaf-spine:leaves=2,spines=1,hosts=2,rate={rate}Gbps"), random.Random(1)
            )
            .flows
        )
        for rate in (10, 100)
    )
    assert abs(fast - 10 * slow) < 6 * math.sqrt(fast + 100 * slow)
