# SPDX-License-Identifier: Apache-2.0
"""Queues of program `spritz` are those of the other programs: accounts, priorities, limit, RED.

Run one case: scripts/run_ptf.py --target native test_spritz_queues.MarksAboveTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests import test_ecn, test_queues
from ptf_tests.spritz import SpritzTest


class DefaultTableTest(SpritzTest):
    """The slow port is the default of its prefix."""

    mode = "MINIMAL"


@group("spritz")
class AccountsTest(DefaultTableTest, test_queues.ReadPortTest):
    """What waits, by egress port and by ingress port."""


@group("spritz")
class PriorityTest(DefaultTableTest, test_queues.PriorityTest):
    """Control packets go first."""


@group("spritz")
class LimitTest(DefaultTableTest, test_queues.LimitTest):
    """The limit without trimming."""


@group("spritz")
class FullQueueTest(DefaultTableTest, test_queues.FullQueueTest):
    """Also of a queue that is full."""


@group("spritz")
class MarksAboveTest(DefaultTableTest, test_ecn.AboveTest):
    """From Kmax on."""


@group("spritz")
class MarksBelowTest(DefaultTableTest, test_ecn.BelowTest):
    """Up to Kmin."""


@group("spritz")
class MarksBetweenTest(DefaultTableTest, test_ecn.BetweenTest):
    """In between."""
