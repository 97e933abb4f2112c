# SPDX-License-Identifier: Apache-2.0
"""Lab 6: the student's balancer, in NICs (mine.py) and in P4 (p4/). The check runs the student's code."""

from __future__ import annotations

from typing import ClassVar

import tailrace
from tailrace.labs.answers import require
from tailrace.labs.lab import Lab, Values, lab, reordered
from tailrace.spec import plugins

_GOAL = 1.5
"""The goal: ECMP's mean FCT divided by the student's."""


@lab
class Balancer(Lab):
    """Files of the student are plug-ins."""

    number = 6
    values: ClassVar[Values] = {
        "changes": lambda self: sum(row.path_changes for row in self.nics.rows),
        "late": lambda self: reordered(self.nics),
        "gain": lambda self: self.gain(),
        "p4_uplinks": lambda self: len({link for links in self.uplinks(self.p4).values() for link in links}),
        "p4_late": lambda self: reordered(self.p4),
    }

    @property
    def nics(self) -> tailrace.Result:
        """The run with the scheme in NICs."""
        return self.ended("mine.py", self.earlier("scheme"))

    @property
    def p4(self) -> tailrace.Result:
        """The run with the scheme in P4."""
        return self.ended("p4", self.earlier("p4_scheme"))

    def ended(self, plugin: str, scheme: str) -> tailrace.Result:
        """The run with a scheme of the student. Raises WrongError if a flow does not end."""
        plugins.use([self.home / plugin])
        result = self.run(scheme=scheme)
        missing = result.summary.flows - result.summary.completed
        require(not missing, f"{missing} of {result.summary.flows} flows do not end")
        return result

    def gain(self) -> float:
        """ECMP's mean FCT divided by the student's. Raises WrongError if it misses the goal."""
        mine, ecmp = (sum(row.fct_ns or 0 for row in run.rows) for run in (self.nics, self.run()))
        require(ecmp / mine >= _GOAL, f"it is {ecmp / mine:.2f}, and the goal is {_GOAL}")
        return ecmp / mine

    def scheme(self, answer: str) -> str:
        """A scheme in NICs with which flows change their paths."""
        changes = sum(row.path_changes for row in self.ended("mine.py", answer).rows)
        require(changes > 0, "it runs, but no flow changes its path; next_ev returns the same port for ever")
        return f"flows change their paths {changes} times"

    def p4_scheme(self, answer: str) -> str:
        """A scheme in P4."""
        return f"all {self.ended('p4', answer).summary.completed} flows end"
