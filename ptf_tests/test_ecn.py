# SPDX-License-Identifier: Apache-2.0
"""ECN marking by RED: never below Kmin, always above Kmax, by chance in between, and only what may be marked.

Run one case: scripts/run_ptf.py --target native test_ecn.AboveTest

The chance itself is tested in virtual time, where the load is exact (tests/p4src); here its ends are.
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from ptf_tests.fabric import FLOW, HOST, HOST_PORT, SLOW_REMOTE
from ptf_tests.frames import Flow, roce, tagged
from ptf_tests.slow_port import FILLER_BYTES, FILLERS, SlowPortTest

NOT_ECT, ECT1, ECT0, CE = range(4)
SLOW_FLOW = Flow(HOST, SLOW_REMOTE, sport=40000)
CERTAIN_PERMILLE = 60_000  # so that pmax * load / kmax is above one


class EcnTest(SlowPortTest):
    def set_red(self, kmin_bytes: int, kmax_bytes: int, pmax_permille: int) -> None:
        self.set_default(
            "red_config",
            self.action("set_red", kmin_bytes=kmin_bytes, kmax_bytes=kmax_bytes, pmax_permille=pmax_permille),
        )

    def mark_of(self, ecn: int) -> int:
        """ECN of a packet that had fillers before it; everything else of it must be as it should."""
        frames = self.behind_fillers(HOST_PORT, roce(SLOW_FLOW, ecn=ecn))
        (marked,) = [frame for frame in frames if Ether(frame)[IP].src == HOST]
        mark = int(Ether(marked)[IP].tos)
        self.assertEqual(bytes(roce(SLOW_FLOW, ttl=63, ecn=mark, tag=tagged(0, self.slow_port))), marked)
        return mark


@group("ecn")
class AboveTest(EcnTest):
    """From Kmax on every packet that may be is marked, and one that may not be is sent as it is."""

    def runTest(self) -> None:
        self.set_red(0, FILLER_BYTES, 0)
        self.assertEqual([NOT_ECT, CE, CE, CE], [self.mark_of(ecn) for ecn in (NOT_ECT, ECT1, ECT0, CE)])


@group("ecn")
class BelowTest(EcnTest):
    """Up to Kmin nothing is marked, nor with Kmax 0, and an idle queue never is a reason."""

    def runTest(self) -> None:
        self.set_red(FILLERS * FILLER_BYTES, 2 * FILLERS * FILLER_BYTES, CERTAIN_PERMILLE)
        self.assertEqual([ECT1, ECT0, CE], [self.mark_of(ecn) for ecn in (ECT1, ECT0, CE)])
        self.set_red(0, 0, CERTAIN_PERMILLE)
        self.assertEqual(ECT0, self.mark_of(ECT0))
        self.set_red(0, 1, CERTAIN_PERMILLE)
        self.send(HOST_PORT, roce(FLOW, ecn=ECT0))
        port, frame = self.receive()
        self.assertEqual(bytes(roce(FLOW, ttl=63, ecn=ECT0, tag=tagged(0, port))), frame)


@group("ecn")
class BetweenTest(EcnTest):
    """Between the two the chance goes by pmax: none at 0, certain where the line passes one."""

    def runTest(self) -> None:
        self.set_red(0, 2 * FILLERS * FILLER_BYTES, 0)
        self.assertEqual(ECT0, self.mark_of(ECT0))
        self.set_red(0, 2 * FILLERS * FILLER_BYTES, CERTAIN_PERMILLE)
        self.assertEqual([NOT_ECT, CE], [self.mark_of(ecn) for ecn in (NOT_ECT, ECT0)])
