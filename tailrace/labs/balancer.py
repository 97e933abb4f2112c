# SPDX-License-Identifier: Apache-2.0
"""Lab 6: the student's balancer, in NICs (mine.py) and in P4 (p4/). The check runs the student's code."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any, ClassVar

import tailrace
from tailrace.experiments.plan.plan import plan
from tailrace.labs.answers import require
from tailrace.labs.lab import Lab, Values, reordered
from tailrace.spec import plugins
from tailrace.spec.atomic import write_file

_GOAL, _COST = 1.3, 1.8
"""The mean FCT of ECMP, and of mine.py as it was, divided by the student's: the goal. The same divided by
ECMP's in the healthy network: the least.
"""

_MINE, _UNTOUCHED = "mine.py", "untouched"


@cache
def _register(text: str) -> None:
    """Registers the scheme of a module of ours; a plug-in would outlast its temporary folder."""
    module = sys.modules.setdefault(_UNTOUCHED, ModuleType(_UNTOUCHED))
    exec(text, vars(module))  # noqa: S102


class Balancer(Lab):
    number = 6
    values: ClassVar[Values] = {
        "changes": lambda self: sum(row.path_changes for row in self.nics.rows),
        "late": lambda self: reordered(self.nics),
        "gain": lambda self: self.gain,
        "p4_uplinks": lambda self: len({link for links in self.uplinks(self.p4).values() for link in links}),
        "p4_late": lambda self: reordered(self.p4),
    }

    def write(self) -> None:
        """Writes also mine.py under another name, the scheme `untouched`."""
        super().write()
        write_file(self.folder / f"{_UNTOUCHED}.py", self.untouched)

    def lacking(self) -> Mapping[str, str]:
        """p4c, if the P4 part has no answers."""
        part = [key for key in self.sheet.questions if key.startswith("p4_")]
        counts = any(self.answers.get(key) for key in part) or shutil.which("p4c-bm2-ss")
        return {} if counts else dict.fromkeys(part, "p4c")

    @property
    def untouched(self) -> str:
        """The text of mine.py as it was, with another name for the scheme."""
        return self.sheet.files[_MINE].replace('"mine"', f'"{_UNTOUCHED}"')

    @property
    def seeds(self) -> tuple[int, ...]:
        return self.experiment().seeds

    def run(self, **keys: Any) -> tailrace.Result:
        """The run with the first seed, or with that of the keys."""
        return super().run(**{"seed": self.seeds[0], **keys})

    @property
    def nics(self) -> tailrace.Result:
        return self.ended(_MINE, self.earlier("scheme"))

    @property
    def p4(self) -> tailrace.Result:
        return self.ended("p4", self.earlier("p4_scheme"))

    def problem(self) -> str:
        suffers = self.idle_ns() > _COST * self.fct_ns("ecmp", fault=[])
        return "" if suffers else "without a balancer flows hardly suffer"

    def idle_ns(self) -> int:
        """The smaller sum of the completion times with ECMP, and with mine.py as it was."""
        _register(self.untouched)
        return min(self.fct_ns("ecmp"), self.fct_ns(_UNTOUCHED))

    def fct_ns(self, scheme: str, **keys: Any) -> int:
        """The sum of the completion times with all seeds."""
        runs = (self.run(scheme=scheme, seed=seed, **keys) for seed in self.seeds)
        return sum(row.fct_ns or 0 for run in runs for row in run.rows)

    def ended(self, plugin: str, scheme: str, **keys: Any) -> tailrace.Result:
        """The run with a scheme of the student. Raises WrongError if it is none, or a flow does not end."""
        path = self.home.resolve() / plugin
        plugins.use([path])
        defined = plugins.place_of(self.experiment(scheme=scheme).parsed.scheme)
        require(defined.startswith(str(path)), f"{plugin} does not define the scheme {scheme}")
        result = self.run(scheme=scheme, **keys)
        missing = result.summary.flows - result.summary.completed
        require(not missing, f"{missing} of {result.summary.flows} flows do not end")
        return result

    @property
    def gain(self) -> float:
        """The smaller of the two factors of _GOAL. Raises WrongError if it misses the goal."""
        mine = self.earlier("scheme")
        for seed in self.seeds:
            self.ended(_MINE, mine, seed=seed)
        gain = self.idle_ns() / self.fct_ns(mine)
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
        programs = plan(self.experiment(scheme=answer, seed=self.seeds[0]), "virtual").job.scheme.programs(
            self.job.topology
        )
        compiled = self.home.resolve() / "p4" / plugins.BUILD
        require(
            all(each.path.parent == compiled for each in programs.values()), "it runs no program of p4/build"
        )
        return f"all {result.summary.completed} flows end"
