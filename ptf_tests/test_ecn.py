# SPDX-License-Identifier: Apache-2.0
"""ECN marking by RED: always above Kmax, and only what may be marked.

Run one case: scripts/run_ptf.py --target native test_ecn.AboveTest

The chance is tested in virtual time, where the load is exact (tests/p4src).
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from ptf_tests.fabric import HOST, HOST_PORT, SLOW_REMOTE
from ptf_tests.frames import Flow, roce, tagged
from ptf_tests.slow_port import FILLER_BYTES, SlowPortTest

NOT_ECT, ECT1, ECT0, CE = range(4)
SLOW_FLOW = Flow(HOST, SLOW_REMOTE, sport=40000)


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
