# SPDX-License-Identifier: Apache-2.0
"""Which target runs, and how fast it may go."""

from __future__ import annotations

import pytest

from tailrace.emulation.target import Machine, choose, probe_machine
from tailrace.experiments.plan import budget
from tailrace.sim.errors import TargetError
from tailrace.spec.scale import scaled
from tailrace.topology import parse_topology

FABRIC = parse_topology("leaf-spine:leaves=2,spines=4,hosts=4,rate=10Gbps,delay=1us")


def pick(wanted: str, *, bmv2: bool, no_mininet: str = "") -> tuple[str, str]:
    choice = choose(wanted, lambda: Machine(bmv2, no_mininet))
    return choice.name, choice.reason


def test_auto() -> None:
    """BMv2 where it is and Mininet runs, else the native switch under Mininet, else virtual time; with the reason."""
    assert pick("auto", bmv2=True) == ("bmv2", "simple_switch_grpc is on PATH, and Mininet can run")
    assert pick("auto", bmv2=False) == ("native", "Mininet can run, and simple_switch_grpc is not on PATH")
    assert pick("auto", bmv2=True, no_mininet="not root") == ("virtual", "Mininet cannot run here: not root")


def test_named_targets() -> None:
    """Taken if they can run, else refused with the reason; virtual always can, and nothing is looked at."""
    assert pick("native", bmv2=True)[0] == "native"
    with pytest.raises(TargetError, match="target native: Mininet cannot run here: not root"):
        pick("native", bmv2=True, no_mininet="not root")
    with pytest.raises(TargetError, match="target bmv2: simple_switch_grpc is not on PATH; `make vm`"):
        pick("bmv2", bmv2=False)

    def never() -> Machine:
        raise AssertionError

    assert choose("virtual", never).name == "virtual"


def test_this_machine_can_be_looked_at() -> None:
    """Whatever this machine is: the answer is a reason or none, and nothing is left behind."""
    assert "\n" not in probe_machine().no_mininet


@pytest.mark.parametrize("target", ["native", "bmv2"])
def test_time_scale_is_the_smallest_that_fits(target: str) -> None:
    """At the chosen scale the load fits, at three quarters of it it does not; more cores need less."""
    scale = budget.time_scale(FABRIC, target, 1024, cores=2)
    assert scale > 100
    assert budget.warning(FABRIC, target, 1024, scale, cores=2) is None
    warning = budget.warning(FABRIC, target, 1024, 0.75 * scale, cores=2)
    assert warning is not None
    assert f"{scale:g} would suffice" in warning
    assert budget.time_scale(FABRIC, target, 1024, cores=8) < scale
    assert budget.load(scaled(FABRIC, scale), target, 1024) == pytest.approx(
        budget.load(FABRIC, target, 1024) / scale, rel=1e-3
    )


def test_virtual_time_holds_anything() -> None:
    """It has a clock of its own: nothing is slowed down."""
    assert budget.time_scale(FABRIC, "virtual", 1024) == 1
    assert budget.warning(FABRIC, "virtual", 1024, 1) is None


def test_slow_networks_are_not_slowed_down() -> None:
    """Links that a laptop holds as they are run at full speed."""
    slow = parse_topology("leaf-spine:leaves=2,spines=2,hosts=1,rate=1Mbps,delay=1ms")
    assert budget.time_scale(slow, "native", 1024, cores=2) == 1
