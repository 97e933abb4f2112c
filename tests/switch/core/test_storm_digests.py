# SPDX-License-Identifier: Apache-2.0
"""Storms of pauses that the traffic manager finds are told by the program's digests."""

from __future__ import annotations

from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.core import V1ModelSwitch
from tests.switch.bmv2_builder import Builder, call, field
from tests.switch.core.test_traffic_manager import INPUTS, OUTPUTS, program
from tests.switch.core.test_watchdog import CLASS, DETECT_NS, GO, RESTORE_NS, STOP, data, switch_of


def telling(*digests: str) -> SwitchProgram:
    """A program that has these digests, as p4src/pfc/watch.p4 does, and sends none itself."""
    b = Builder(INPUTS, OUTPUTS)
    std = "standard_metadata"
    b.run(
        [
            call("assign", field(std, "egress_spec"), field("in", "port")),
            call("assign", field(std, "priority"), field("in", "priority")),
        ]
    )
    fields = [field("in", "port"), field("in", "priority")]
    b.extra["learn_lists"] = [
        {"id": n + 1, "name": name, "elements": fields} for n, name in enumerate(digests)
    ]
    return load_program(b.text())


def storm_and_calm(switch: V1ModelSwitch) -> None:
    switch.inject(2, STOP, 0)
    switch.inject(1, data(), 0)
    switch.run(DETECT_NS)
    switch.inject(2, GO, 100_000)
    switch.run(100_000 + RESTORE_NS)


def test_storms_are_told_by_the_programs_digests() -> None:
    """With their times, whatever the order in which the program has them; and in the log."""
    runs = telling("other", "pfc_restored_t", "pfc_storm_t")
    with switch_of(runs=runs) as switch:
        said: list[tuple[str, str]] = []
        switch.set_log(lambda level, text: said.append((level, text)))
        storm_and_calm(switch)
        assert switch.digests() == [(2, DETECT_NS, (2, CLASS)), (1, 100_000 + RESTORE_NS, (2, CLASS))]
        words = ["port 2, priority 3: PFC storm detected", "port 2, priority 3: PFC storm is over"]
        assert said == [("warning", text) for text in words]


def test_a_program_without_the_digests_tells_nothing() -> None:
    """Nor does one that takes the place of one that had them, at the wrong number."""
    with switch_of(runs=telling("pfc_storm_t")) as switch:
        storm_and_calm(switch)
        assert switch.digests() == [(0, DETECT_NS, (2, CLASS))]
        for turn, runs in enumerate((program(), telling("other"), telling("other", "pfc_storm_t")), 1):
            switch.load(runs)
            switch.inject(2, STOP, turn * 1_000_000)
            switch.inject(1, data(), turn * 1_000_000)
            switch.run(turn * 1_000_000 + DETECT_NS)
            switch.inject(2, GO, turn * 1_000_000 + 100_000)
            switch.run(turn * 1_000_000 + 900_000)
            digests = [record.digest for record in switch.digests()]
            assert digests == [1] * (len(runs.model.digests) == 2)
