# SPDX-License-Identifier: Apache-2.0
"""ECMP, the program and what it shares with the others: flows spread, each keeps its path, a failed slot
moves alone.

Run one case: scripts/run_ptf.py --target native test_ecmp.SpreadTest
"""

from __future__ import annotations

from collections import Counter

from ptf.testutils import group

from ptf_tests.fabric import FLOW, HOST, HOST_PORT, REMOTE, UPLINK_GROUP, UPLINKS, FabricTest
from ptf_tests.frames import Flow, roce, tagged
from tailrace.codec.layers.bth import Opcode

FLOWS = 96
FIRST_SPORT = 50000


class EcmpTest(FabricTest):
    """Many flows to one other switch."""

    def paths(self) -> list[int]:
        """The port of each flow."""
        ports = []
        for sport in range(FIRST_SPORT, FIRST_SPORT + FLOWS):
            flow = Flow(HOST, REMOTE, sport=sport)
            self.send(HOST_PORT, roce(flow))
            port, frame = self.receive()
            self.assertEqual(bytes(roce(flow, ttl=63, tag=tagged(0, port))), frame)
            ports.append(port)
        return ports


@group("ecmp")
class SpreadTest(EcmpTest):
    """Every uplink has its share of the flows, and a flow never moves."""

    def runTest(self) -> None:
        paths = self.paths()
        shares = Counter(paths)
        self.assertEqual(set(UPLINKS), set(shares))
        # Of 96 flows an uplink has 32 on average, with a standard deviation of 4.6.
        self.assertGreater(min(shares.values()), FLOWS // len(UPLINKS) // 3)
        self.assertEqual(paths, self.paths())
        self.nothing_else()


@group("ecmp")
class SeedTest(EcmpTest):
    """Switches with other seeds or numbers spread the same flows otherwise, so no two tiers agree."""

    def runTest(self) -> None:
        spreads = []
        for switch_id, hash_seed in ((0, 0), (1, 0), (0, 12345), (2, 12345)):
            self.set_default(
                "switch_config", self.action("set_switch", switch_id=switch_id, hash_seed=hash_seed)
            )
            spreads.append(self.paths())
        for i, spread in enumerate(spreads):
            for other in spreads[:i]:
                moved = sum(a != b for a, b in zip(spread, other, strict=True))
                self.assertGreater(moved, FLOWS // 4)
        # Flows that meet on a link of this switch part again behind it (no polarisation).
        together = [b for a, b in zip(spreads[0], spreads[1], strict=True) if a == UPLINKS[0]]
        self.assertEqual(set(UPLINKS), set(together))


@group("ecmp")
class MovedSlotTest(EcmpTest):
    """Only the flows of a slot that the controller moves change their path."""

    def runTest(self) -> None:
        before = self.paths()
        self.move_slot(UPLINK_GROUP, 1, UPLINKS[0])
        after = self.paths()
        self.assertEqual([UPLINKS[0] if port == UPLINKS[1] else port for port in before], after)


@group("ecmp")
class KeyTest(FabricTest):
    """The path depends on every part of the 5-tuple and on nothing else."""

    def port_of(self, frame: object) -> int:
        self.send(HOST_PORT, frame)
        return self.receive()[0]

    def runTest(self) -> None:
        same = [
            roce(FLOW, ttl=9, ecn=2, left=5, tag=1, payload=b"other"),
            roce(FLOW, dst_mac="02:00:00:00:00:55"),
            roce(FLOW, opcode=Opcode.WRITE_LAST),
        ]
        port = self.port_of(roce(FLOW))
        self.assertEqual([port] * len(same), [self.port_of(frame) for frame in same])
        varied = {
            "src": [Flow(f"10.0.1.{i}", REMOTE) for i in range(2, 34)],
            "dst": [Flow(HOST, f"10.0.2.{i}") for i in range(2, 34)],
            "sport": [Flow(HOST, REMOTE, sport=i) for i in range(2, 34)],
            "dport": [Flow(HOST, REMOTE, dport=i) for i in range(100, 132)],
        }
        for name, flows in varied.items():
            self.assertEqual(set(UPLINKS), {self.port_of(roce(flow)) for flow in flows}, name)


@group("ecmp")
class FlowcutOffTest(SpreadTest):
    """The Flowcut program, switched off, is ECMP: no shim, no state."""

    program = "flowcut"


@group("ecmp")
class FlowcutOffMovesTest(MovedSlotTest):
    """Also when slots move."""

    program = "flowcut"
