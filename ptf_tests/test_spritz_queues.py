# SPDX-License-Identifier: Apache-2.0
"""Queues of program `spritz` are those of the other programs.

Run one case: scripts/run_ptf.py --target native test_spritz_queues.AccountsTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests import test_ecn, test_queues
from ptf_tests.spritz import SpritzTest


@group("spritz")
class AccountsTest(SpritzTest, test_queues.ReadPortTest):
    """What waits, by egress port and by ingress port; the slow port is the default of its prefix."""

    mode = "MINIMAL"


@group("spritz")
class MarksAboveTest(SpritzTest, test_ecn.AboveTest):
    """RED marks from Kmax on."""

    mode = "MINIMAL"
