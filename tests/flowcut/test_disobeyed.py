# SPDX-License-Identifier: Apache-2.0
"""Sources that ignore flow pauses (Flowcut §II-B): PFC holds them, drains end, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.schemes.errors import IntentError
from tailrace.sim.outcome import Outcome
from tailrace.sim.run import VirtualBackend
from tailrace.spec import SpecError

NEVER_BYTES = (1 << 32) - 1
WORDS = {
    "topology": "fat-tree:k=4,rate=25Gbps,delay=1us",
    "workload": "permutation:size=256KiB,peers=remote",
    "fault": ["link-slow:fraction=0.1,factor=0.1"],
    "transport": "sr",
    "window": "1.5BDP",
    "target": "virtual",
}


def run(scheme: str, seed: int, *, obeys: bool, held: bool = True) -> Outcome:
    """`obeys`: NICs know flow pauses; `held`: switches take notice where they do not."""
    job = plan(make({**WORDS, "scheme": scheme, "seed": seed}), "virtual").job
    if not obeys:
        job = structs.replace(job, nic=replace(job.nic, pause_timeout_ns=1))
    if not held:
        job = structs.replace(job, scheme=structs.replace(job.scheme, obey_bytes=NEVER_BYTES))
    return VirtualBackend().run(job, lambda _progress: None)


def total(outcome: Outcome, counter: str) -> int:
    return sum(counts[counter] for counts in outcome.counters.values())


def check_order(outcome: Outcome) -> None:
    assert all(record.end_ns is not None for record in outcome.records)
    assert sum(record.out_of_order for record in outcome.records) == 0


@pytest.mark.parametrize("variant", ["full", "ingress"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_who_ignores_flow_pauses_is_held(variant: str, seed: int) -> None:
    """Then drains end while the flow still sends: more of them, each told by an XON, and the path changes. All of it
    in order, as without."""
    scheme = f"flowcut:variant={variant},left=0"
    held, free = (run(scheme, seed, obeys=False, held=held) for held in (True, False))
    for outcome in (held, free):
        check_order(outcome)
    assert total(free, "class_pauses_sent") == 0 < total(held, "class_pauses_sent")
    assert total(held, "flowcut_rerouted") > total(free, "flowcut_rerouted")


@pytest.mark.parametrize("seed", [1, 2])
def test_who_obeys_is_never_held(seed: int) -> None:
    outcome = run("flowcut:left=0", seed, obeys=True)
    assert total(outcome, "xoff_sent") > 0 == total(outcome, "class_pauses_sent")
    check_order(outcome)


@pytest.mark.parametrize("variant", ["full", "ingress"])
def test_pauses_by_class(variant: str) -> None:
    """NICs that know PFC alone: whoever is asked to stop does, and goes on at the end of the drain."""
    for obeys in (True, False):
        outcome = run(f"flowcut:variant={variant},pause=class,left=0", 1, obeys=obeys)
        assert total(outcome, "xoff_sent") == total(outcome, "xon_sent") == 0
        assert total(outcome, "class_pauses_sent") > 0 < total(outcome, "flowcut_rerouted")
        check_order(outcome)


def test_what_does_not_go_together() -> None:
    with pytest.raises(
        SpecError, match="pause may only be given together with variant=full or variant=ingress"
    ):
        make({**WORDS, "scheme": "flowcut:variant=nic,pause=class"})
    with pytest.raises(SpecError, match="credit may only be given together with pause=flow"):
        make({**WORDS, "scheme": "flowcut:pause=class,credit=4KB"})
    with pytest.raises((SpecError, IntentError), match="pause=class cannot be used with PFC"):
        plan(make({**WORDS, "scheme": "flowcut:pause=class", "pfc": "default"}), "virtual")
