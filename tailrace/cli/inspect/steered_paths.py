# SPDX-License-Identifier: Apache-2.0
"""EV lists for `tailrace paths`: the endpoints' paths, for one pair of hosts of each pair of switches.

The schemes with such lists are `ResolvedBounded`: packets take loop-free paths of bounded length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tailrace.cli.inspect.network import InspectedNetwork
from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.controller.inspect.steered_paths import Pair, check_lists, check_sample, read_lists, walker_of
from tailrace.schemes.base import resolve
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.spritz.bounded import ResolvedBounded
from tailrace.schemes.spritz.declaration import SpritzConfig
from tailrace.schemes.spritz.endpoints import EndpointPaths
from tailrace.spec import SpecError
from tailrace.tables.listing import Listing
from tailrace.topology import Topology, parse_topology


def endpoints_of(network: InspectedNetwork, topology: Topology) -> EndpointPaths | None:
    """The EV lists of a network; None if its switches do not run the program `spritz`.

    Without a run file, switches with the tables of `spritz` are assumed to run Spritz with default weights.

    Raises:
        SpecError: the topology has no such lists.
        ControllerError: a switch cannot be read.
    """
    scheme = network.scheme_on(topology)
    if scheme is None:
        first = next(iter(network.nodes.values()))
        if "path_slots" not in {table.name for table in first.program.tables.values()}:
            return None
        scheme = resolve(SpritzConfig(), topology)
    return scheme.paths(topology) if isinstance(scheme, ResolvedBounded) else None


def planned_lists(topology_spec: str, scheme_spec: str) -> tuple[Topology, EndpointPaths]:
    """The EV lists that a scheme's endpoints use on a topology.

    Raises:
        SpecError: a bad spec, or a scheme whose endpoints choose no paths.
        IntentError: the topology has no such lists.
    """
    topology = parse_topology(topology_spec)
    config = resolve(parse_scheme(scheme_spec), topology)
    if not isinstance(config, ResolvedBounded):
        raise SpecError(
            f"--scheme: endpoints of {scheme_spec} choose no paths; those of spritz, ops and flicr do"
        )
    return topology, config.paths(topology)


class SteeredPaths:
    """Listings of `tailrace paths` for networks whose endpoints choose paths by EV."""

    def __init__(
        self, topology: Topology, endpoints: EndpointPaths, nodes: Mapping[str, InspectedSwitch]
    ) -> None:
        self._topology, self._endpoints, self._nodes = topology, endpoints, nodes

    def lists(self, pairs: Sequence[Pair]) -> Listing:
        """One row per path, for one pair of hosts of each pair of switches.

        Raises:
            SpecError: all hosts are on one switch.
        """
        return read_lists(self._endpoints, self._of_switch_pairs(pairs))

    def check(self, pairs: Sequence[Pair], sample: int | None) -> tuple[Listing, list[str]]:
        """One row per pair of switches, whose paths were walked through the entries; and the paths that
        differ from the lists.

        Args:
            pairs: pairs of hosts to check.
            sample: walk only this number of paths; None: all.

        Raises:
            SpecError: all hosts are on one switch.
            SwitchError: a switch cannot be read.
        """
        walker = walker_of(self._topology, self._nodes)
        chosen = self._of_switch_pairs(pairs)
        if sample is None:
            walk = check_lists(self._endpoints, walker, chosen)
        else:
            walk = check_sample(self._endpoints, walker, chosen, sample)
        problems = [f"{row['src']} to {row['dst']}: {row['note']}" for row in walk.rows if row["different"]]
        return walk, problems

    def _of_switch_pairs(self, pairs: Sequence[Pair]) -> list[Pair]:
        """The first pair of hosts of each pair of switches; all hosts of a switch share its lists.

        Raises:
            SpecError: there is only one switch.
        """
        first_pairs: dict[tuple[str, str], Pair] = {}
        for src, dst in pairs:
            if src.switch != dst.switch:
                first_pairs.setdefault((src.switch, dst.switch), (src, dst))
        if not first_pairs:
            src, dst = pairs[0]
            raise SpecError(f"{src.name} and {dst.name} are on one switch: there is nothing to choose")
        return list(first_pairs.values())
