# SPDX-License-Identifier: Apache-2.0
"""Lab 1: ECMP's hash sends two flows by one uplink; another source port separates them."""

from __future__ import annotations

import csv
import re
from typing import Any, ClassVar

import tailrace
from tailrace.labs.answers import require, words
from tailrace.labs.lab import EXPERIMENT, Lab, Values
from tailrace.spec.schema import read_toml

_FLOWS = "flows.csv"
_WORKLOAD = "permutation:size=1MiB,peers=remote"


class Collision(Lab):
    number = 1
    values: ClassVar[Values] = {
        "paths": lambda self: sum(switch.role == "spine" for switch in self.job.topology.switches),
        "link": lambda self: self.link_of(self.run())[self.first],
        "idle": lambda self: 2 * self.values["paths"](self) - len({*self.link_of(self.run()).values()}),
        "slowdown": lambda self: self.run().rows[self.first - 1].slowdown,
        "gain": lambda self: self.fct_ns(self.run()) / self.fct_ns(self.moved(self.earlier("sport"))),
    }

    def write(self) -> None:
        """Writes also the flows, with the source ports that the seed gives them."""
        super().write()
        topology = read_toml(self.folder / EXPERIMENT)["topology"]
        tailrace.convert(_WORKLOAD, self.folder / _FLOWS, "csv", topology=topology, seed=self.seed)

    def experiment(self, **keys: Any) -> tailrace.Experiment:
        """The experiment with the flows of this folder."""
        return super().experiment(**{"workload": str(self.folder / _FLOWS), **keys})

    def problem(self) -> str:
        links = self.link_of(self.run())
        return "" if len({*links.values()}) < len(links) else "no two flows share an uplink"

    @property
    def first(self) -> int:
        """The first flow of the pair."""
        return int(words(self.earlier("pair"))[0])

    def link_of(self, result: tailrace.Result) -> dict[int, str]:
        return {flow: links[0] for flow, links in self.uplinks(result).items()}

    def fct_ns(self, result: tailrace.Result) -> int:
        """The completion time of the pair's first flow."""
        return result.rows[self.first - 1].fct_ns or 0

    def moved(self, sport: str) -> tailrace.Result:
        """The run in which the pair's first flow has another source port."""
        path = self.folder / f"{self.first}-{sport}.csv"
        with (self.folder / _FLOWS).open(newline="") as file, path.open("w", newline="") as changed:
            for row, cells in enumerate(csv.reader(file)):
                csv.writer(changed).writerow([*cells[:4], sport if row == self.first else cells[4]])
        return self.run(workload=str(path))

    def pair(self, answer: str) -> str:
        """Any two flows that share an uplink."""
        links = self.link_of(self.run())
        ids = [int(word) for word in words(answer) if re.fullmatch("[0-9]{1,9}", word)]
        right = len(words(answer)) == len(ids) == len({*ids} & {*links}) == 2
        require(right, f"expected two of the ids {', '.join(map(str, links))}")
        first, second = ids
        paths = f"flow {first} takes {links[first]}, flow {second} takes {links[second]}"
        require(links[first] == links[second], f"{paths}; both the leaf and the spine must be the same")
        return paths

    def sport(self, answer: str) -> str:
        """A source port with which the pair's first flow has an uplink to itself."""
        require(answer.isdecimal() and 0 < int(answer[:9]) < 1 << 16, "expected a UDP port, 1 to 65535")
        links = self.link_of(self.moved(str(int(answer))))
        others = [flow for flow, link in links.items() if link == links[self.first] and flow != self.first]
        path = f"with source port {answer} flow {self.first} takes {links[self.first]}"
        ids = " and ".join(map(str, others))
        too = f"do flows {ids}" if len(others) > 1 else f"does flow {ids}"
        require(not others, f"{path}, and so {too}; try another port")
        return f"{path}, and no other flow does"
