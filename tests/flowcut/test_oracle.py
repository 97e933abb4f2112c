# SPDX-License-Identifier: Apache-2.0
"""Flowcut in the switches against its model, packet by packet, and the order of every flow, on random networks."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings

from tests.flowcut.run import Run
from tests.flowcut.scenario import Scenario, scenarios

_SETTINGS = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)


def check(scenario: Scenario) -> None:
    with Run(scenario) as run:
        assert run.go(), "the network comes to rest"
        assert run.order.overtaken() == []
        if run.order.delivered() and not scenario.loses:
            assert run.leftovers() == []
        else:
            run.pass_the_age()
            run.leftovers(sweep=True)
            assert run.leftovers() == []
        run.compare_with_model()


@given(scenarios())
@_SETTINGS
def test_without_loss_nothing_overtakes_and_every_entry_goes_by_itself(scenario: Scenario) -> None:
    check(scenario)


@given(scenarios(losses=True))
@_SETTINGS
def test_with_loss_nothing_overtakes_and_a_sweep_clears_what_is_left(scenario: Scenario) -> None:
    check(scenario)


@given(scenarios(losses=True))
@settings(_SETTINGS, max_examples=10)
def test_the_same_with_many_next_hops(scenario: Scenario) -> None:
    check(replace(scenario, topology="leaf-spine:leaves=2,spines=20,hosts=4,rate=1Gbps,delay=1us"))
