# SPDX-License-Identifier: Apache-2.0
"""RLB: which intervals are strikes against a port, and which take back all (RLB §IV-B.2, Algorithm 2).

Run one case: scripts/run_ptf.py --target native test_rlb_failure.CalmTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import HOST_PORT, UPLINKS
from ptf_tests.rlb import FOREVER, MOST, AnswerTest, cnm
from ptf_tests.slow_port import ATTEMPTS

FAST, OTHER, LAST = UPLINKS
YEAR_LIKE = 1 << 30  # ticks: no recirculation takes so long
PAUSE_TICKS = 300_000  # of a microsecond


class IntervalTest(AnswerTest):
    """Each packet that wants FAST waits once. An interval ends with the first one after its length;
    where that comes after twice the length, everything is forgiven, so the length is set just before.
    """

    def setUp(self) -> None:
        super().setUp()
        self.subscribe("failure_alert_t")
        self.measure({FAST: YEAR_LIKE // 2, OTHER: YEAR_LIKE, LAST: YEAR_LIKE})
        self.tell(FAST, cnm(FOREVER))
        self.set_length(YEAR_LIKE // 4, 0)
        self.began = self.hold_packet()

    def set_length(self, ticks: int, most: int) -> None:
        """Set how long an interval is, and which average it may have."""
        # No delay is expected, so that no interval is longer for it.
        self.limits(most=1, usual_ticks=0, trust_ticks=0)
        self.failures(ticks, most)

    def now(self) -> int:
        """The switch's time."""
        return self.port(HOST_PORT)["now_ticks"]

    def hold_packet(self) -> tuple[int, int]:
        """Makes one packet wait; returns the ticks before and after it came in."""
        waited, before = self.recirculations(), self.now()
        self.assertEqual(list(UPLINKS), self.round_of_packets())
        after = self.now()
        self.assertEqual(waited + 1, self.recirculations())
        return before, after

    def interval(self, most: int) -> bool:
        """An interval with an average of one ends where `most` is allowed; whether surely in time."""
        earliest, latest = self.began
        while (now := self.now()) < latest + PAUSE_TICKS:
            pass
        self.length = now - latest - 1
        self.set_length(self.length, most)
        self.began = self.hold_packet()
        return self.began[1] - earliest <= 2 * self.length

    def intervals(self, *allowed: int) -> None:
        """So many, one after the other, and the first one after everything was forgiven."""
        for _ in range(ATTEMPTS):
            if all(self.interval(most) for most in allowed):
                return
            self.set_length(1, MOST)
            self.began = self.hold_packet()
        raise AssertionError("the machine is too slow: an interval was never over at the right time")

    def alert(self) -> tuple[int, int, int, int]:
        """Port, sum, packets and delay of the next alert."""
        members = self.receive_message("digest").data[0].struct.members
        port, total, packets, delay = (int.from_bytes(member.bitstring, "big") for member in members)
        return port, total, packets, delay


@group("rlb")
class CalmTest(IntervalTest):
    """Two intervals with too high an average raise an alert, unless there was one between them without."""

    def runTest(self) -> None:
        self.intervals(0, 1, 0, 1, 1, 0)
        self.assertEqual(0, self.count("failures_found"))
        self.interval(0)
        self.assertEqual(1, self.count("failures_found"))
        self.assertEqual((FAST, 1, 1, 0), self.alert())
        self.nothing_else()


@group("rlb")
class StretchedIntervalTest(IntervalTest):
    """An interval is no shorter than a recirculation is expected to take."""

    def set_length(self, ticks: int, most: int) -> None:
        self.limits(most=1, usual_ticks=ticks, trust_ticks=0)
        self.failures(1, most)

    def runTest(self) -> None:
        self.intervals(0)
        self.assertEqual(0, self.count("failures_found"))
        # Were it one tick long, the one before would have been followed by one without any packet.
        self.interval(0)
        self.assertEqual(1, self.count("failures_found"))
        self.assertEqual((FAST, 1, 1, self.length), self.alert())
        self.nothing_else()
