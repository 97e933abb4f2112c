# SPDX-License-Identifier: Apache-2.0
"""Lab 6: the student's balancer, in NICs (mine.py) and in P4 (p4/). The check runs the student's code."""

from __future__ import annotations

from typing import ClassVar

import tailrace
from tailrace.experiments.plan.plan import plan
from tailrace.labs.answers import require
from tailrace.labs.lab import Lab, Values, reordered
from tailrace.spec import plugins

_GOAL, _COST = 1.5, 3.0
"""ECMP's mean FCT divided by the student's: the goal; divided by that in the healthy network: the least."""


def total_ns(result: tailrace.Result) -> int:
    """The sum of the completion times."""
    return sum(row.fct_ns or 0 for row in result.rows)


class Balancer(Lab):
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
        return self.ended("mine.py", self.earlier("scheme"))

    @property
    def p4(self) -> tailrace.Result:
        return self.ended("p4", self.earlier("p4_scheme"))

    def problem(self) -> str:
        healthy = self.run(fault=[])
        return "" if total_ns(self.run()) > _COST * total_ns(healthy) else "ECMP hardly suffers"

    def ended(self, plugin: str, scheme: str) -> tailrace.Result:
        """The run with a scheme of the student. Raises WrongError if it is none, or a flow does not end."""
        path = self.home.resolve() / plugin
        plugins.use([path])
        defined = plugins.place_of(self.experiment(scheme=scheme).parsed.scheme)
        require(defined.startswith(str(path)), f"{plugin} does not define the scheme {scheme}")
        result = self.run(scheme=scheme)
        missing = result.summary.flows - result.summary.completed
        require(not missing, f"{missing} of {result.summary.flows} flows do not end")
        return result

    def gain(self) -> float:
        """ECMP's mean FCT divided by the student's. Raises WrongError if it misses the goal."""
        gain = total_ns(self.run()) / total_ns(self.nics)
        require(
            gain >= _GOAL, f"it is {gain:.2f}, and the goal is {_GOAL}. {self.sheet.questions['gain'][1]}"
        )
        return gain

    def scheme(self, answer: str) -> str:
        """A scheme in NICs with which flows change their paths."""
        changes = sum(row.path_changes for row in self.ended("mine.py", answer).rows)
        require(changes > 0, "it runs, but no flow changes its path; next_ev returns the same port for ever")
        return f"flows change their paths {changes} times"

    def p4_scheme(self, answer: str) -> str:
        """A scheme in P4."""
        result = self.ended("p4", answer)
        programs = plan(self.experiment(scheme=answer), "virtual").job.scheme.programs(self.job.topology)
        compiled = self.home.resolve() / "p4" / plugins.BUILD
        require(
            all(each.path.parent == compiled for each in programs.values()), "it runs no program of p4/build"
        )
        return f"all {result.summary.completed} flows end"
