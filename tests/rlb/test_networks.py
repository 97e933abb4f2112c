# SPDX-License-Identifier: Apache-2.0
"""Whole networks under RLB, drawn at random: nothing is lost but by faults, nothing goes round for ever, nothing is
left behind. See tests/rlb/scenario.py."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, example, given, settings

from tailrace.hosts.nic.nic import Nic
from tests.rlb.scenario import TOPOLOGIES, Run, Scenario, counter, register, scenarios

_SETTINGS = settings(
    max_examples=16,
    suppress_health_check=[HealthCheck.too_slow],
)
_HARMLESS = {"pfc_frame", "multicast_original", "ingress_drop", "egress_drop"}
"""Why frames end in switches that are no losses: pauses obeyed, warnings consumed and copies of them."""

_STATE_ENDS = ("enqueued_bytes", "dequeued_bytes"), ("enqueued_by_source", "dequeued_by_source")


def check_accounts(run: Run) -> None:
    """No byte is left in any account of the programs or of the traffic manager, and nobody is paused."""
    assert run.network.account().balanced
    for name, switch in run.switches():
        for entered, left in _STATE_ENDS:
            assert register(switch, entered) == register(switch, left), name
        assert register(switch, "recirculating") == [0], name
        buffer = switch.buffer()
        assert (buffer.shared_bytes, buffer.headroom_bytes, buffer.held_bytes) == (0, 0, 0), name
        for port in run.topology.ports_of(name):
            stats = switch.pfc_stats(port, 0, run.network.now_ns)
            assert stats.bytes == 0, (name, port)


def check_nothing_lost(run: Run) -> None:
    """No switch dropped anything, by program or by traffic manager."""
    account = run.network.account()
    assert set(account.reasons) <= _HARMLESS, account.reasons
    for name, switch in run.switches():
        assert not any(counter(switch, "drops")), name


def check_recirculations(run: Run) -> None:
    """No packet went round more often than it may."""
    most = run.scenario.most_allowed
    for name, switch in run.switches():
        assert not any(counter(switch, "recirculations")[most:]), name


def check_warnings_end(run: Run) -> None:
    """Nobody is warned of anything once the longest time of a warning has passed."""
    run.network.advance_to(run.network.now_ns + run.scheme.valid_ns + 1)
    for name, switch in run.switches():
        latest = max(register(switch, "warned_until_ticks") + register(switch, "port_warned_until_ticks"))
        assert latest <= run.network.now_ns, name


@_SETTINGS
@given(scenarios)
@example(Scenario(TOPOLOGIES[1], 1, "drill", "fixed", 5, 4, 3, "gbn", "none"))
@example(Scenario(TOPOLOGIES[3], 2, "presto", "none", 0, 8, 3, "gbn", "none"))
@example(Scenario(TOPOLOGIES[3], 3, "letflow", "dynamic", 8, 8, 3, "dcqcn", "link-down"))
@example(Scenario(TOPOLOGIES[2], 4, "hermes", "dynamic", 9, 9, 3, "gbn", "restart", shared=True))
@example(Scenario(TOPOLOGIES[3], 2954, "drill", "none", 0, 1, 1, "dcqcn", "drop"))
def test_every_flow_ends_and_nothing_is_left(scenario: Scenario) -> None:
    """Every flow ends and the network comes to rest, so there is no deadlock; and all is given back."""
    with Run(scenario) as run:
        assert run.go(), "the network comes to rest"
        records = Nic.merge(*run.nics)
        assert [record.id for record in records if record.end_ns is None] == []
        check_accounts(run)
        check_recirculations(run)
        if scenario.fault == "none":
            check_nothing_lost(run)
        check_warnings_end(run)


def test_leaves_hear_of_queues_in_the_middle():
    """In a fat tree: cores are told of queues in pods, pass it on, and edges get it leaf by leaf."""
    with Run(Scenario(TOPOLOGIES[3], 2, "presto", "fixed", 5, 8, 3, "gbn", "none")) as run:
        assert run.go()
        counts: Counter[tuple[str, str]] = Counter()
        for switch in run.topology.switches:
            for name in ("warnings_passed_on", "warnings_received"):
                counts[switch.role, name] += sum(counter(run.network.switch(switch.name), name))
    assert min(counts["agg", "warnings_passed_on"], counts["core", "warnings_passed_on"]) > 0
    assert counts["edge", "warnings_received"] > 0
    assert counts["edge", "warnings_passed_on"] == 0
