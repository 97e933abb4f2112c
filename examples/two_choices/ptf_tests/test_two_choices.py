# SPDX-License-Identifier: Apache-2.0
"""The power of two choices: a flowlet keeps its path, a new flowlet takes the less loaded of two paths.

Run one case: scripts/run_ptf.py --plugin examples/two_choices --target native test_two_choices.EvadeTest

In a group of two, both ports are always the choices, so the result does not depend on random numbers.
"""

from __future__ import annotations

import time

from ptf.testutils import group

from ptf_tests.fabric import FLOW, HOST, HOST_PORT, REMOTE, UPLINKS, FabricTest
from ptf_tests.frames import Flow, roce
from ptf_tests.slow_port import ATTEMPTS, FILLER_BYTES, FILLERS, SlowPortTest

PAIR_REMOTE, PAIR_GROUP, FREE_PORT = "10.0.9.2", 9, UPLINKS[0]
CHOICES = ("first_choices", "other_choices")
NEVER_TICKS, SHORT_GAP_TICKS = 10**12, 1_000  # the short gap is 1 ms on both targets
PAUSE_S = 0.005
FLOWS = 40


class TwoChoicesTest(FabricTest):
    """Adds a group's slots to the tables of both choices as well."""

    program = "two_choices"
    folder = "plugin"

    def add_group(self, address: str, group: int, ports: tuple[int, ...], size: int | None = None) -> None:
        super().add_group(address, group, ports, size)
        for table in CHOICES:
            for slot, port in enumerate(ports):
                self.add_entry(table, {"group": group, "slot": slot}, self.action("choice", port=port))

    def set_gap(self, ticks: int) -> None:
        self.set_default("flowlet_config", self.action("set_flowlet_gap", gap_ticks=ticks))

    def port_of(self, flow: Flow) -> int:
        self.send(HOST_PORT, roce(flow))
        return self.receive()[0]


@group("two_choices")
class FlowletTest(TwoChoicesTest):
    """Without a pause a flow keeps its path; different flows, and flowlets of one flow, use all paths."""

    def runTest(self) -> None:
        self.set_gap(NEVER_TICKS)
        flows = [Flow(HOST, REMOTE, sport=1000 + number) for number in range(FLOWS)]
        first = [self.port_of(flow) for flow in flows]
        # Each uplink is missing with a chance of (2/3)^40, about one in ten million.
        self.assertEqual(set(UPLINKS), set(first))
        self.assertEqual(first, [self.port_of(flow) for flow in flows])
        self.set_gap(SHORT_GAP_TICKS)
        ports = []
        for _ in range(FLOWS):
            time.sleep(PAUSE_S)  # the pause that is tested
            ports.append(self.port_of(FLOW))
        self.assertEqual(set(UPLINKS), set(ports))
        self.expect_drops()  # none


@group("two_choices")
class EvadeTest(TwoChoicesTest, SlowPortTest):
    """While packets wait at one port of a pair, a new flowlet leaves by the other port."""

    def evade(self, flow: Flow) -> bool:
        """Sends a frame while packets wait at the slow port; returns whether they waited all the time."""
        self.fill()  # with FILLERS packets
        before = self.count("port_rx", HOST_PORT)
        self.send(HOST_PORT, roce(flow))
        self.expect_count("port_rx", before + 1, HOST_PORT)
        return self.waiting() >= FILLER_BYTES

    def runTest(self) -> None:
        self.set_gap(NEVER_TICKS)
        self.add_group(PAIR_REMOTE, PAIR_GROUP, (self.slow_port, FREE_PORT))
        evaded = 0
        for number in range(ATTEMPTS):
            # each packet belongs to a new flow, so it begins a flowlet
            waited = self.evade(Flow(HOST, PAIR_REMOTE, sport=2000 + number))
            if waited:
                self.receive(FREE_PORT)
                evaded += 1
            # The frame may have left by either port.
            self.drain(FILLERS)
            self.dataplane.flush()
            if evaded == 3:
                return
        self.fail("the machine is too slow: the slow port was hardly ever loaded at the right time")
