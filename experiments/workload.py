# SPDX-License-Identifier: Apache-2.0
"""Workloads: words such as ``permutation:size=1MiB``, or a CSV file -> the flows of an experiment.

    permutation:size=,peers=any|remote,flows=,jitter=,seed=   every host sends to one other and hears from one
    alltoall:size=,jitter=,seed=                              every host sends to every other
    incast:degree=,size=,jitter=,seed=                        `degree` hosts send to one
    random:flows=,size=,jitter=,seed=                         pairs drawn at random
    FILE.csv                                                  columns src,dst,bytes,start: see csv_file.py

`peers=remote` pairs hosts of different switches only. `flows` is the number of flows in total; without it
there are as many as hosts, and a permutation deals more of them round the hosts. `jitter` spreads the
starts evenly at random from 0 to that time. `seed` overrides the experiment's.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from experiments import pairs
from experiments.csv_file import Row, read_rows
from hosts.errors import ConfigError
from hosts.flow import FlowSpec
from spec import Options, SpecError, Words, parse
from topology import Topology

FIRST_QPN = 0x100
"""The first queue pair of a flow; lower numbers are special in InfiniBand."""

SOURCE_PORTS = range(0xC000, 0x10000)
"""UDP source ports from which RoCEv2 NICs take a flow's entropy."""

DEFAULT_BYTES = 1 << 20

_KEYS = {
    "permutation": ("size", "peers", "flows", "jitter", "seed"),
    "alltoall": ("size", "jitter", "seed"),
    "incast": ("degree", "size", "jitter", "seed"),
    "random": ("flows", "size", "jitter", "seed"),
}


@dataclass(frozen=True, slots=True)
class Workload:
    """What an experiment sends.

    `words` are what it was made from; `rows` hold the flows of a file, and the other fields the options of a
    pattern. `flows_total` 0 means the pattern's own number.
    """

    words: str
    name: str
    size_bytes: int = DEFAULT_BYTES
    peers: str = "any"
    flows_total: int = 0
    degree: int = 0
    jitter_ns: int = 0
    seed: int | None = None
    rows: tuple[Row, ...] = ()

    def flows(self, topology: Topology, rng: random.Random) -> list[FlowSpec]:
        """The flows, by rising id from 1.

        Raises:
            SpecError: the topology cannot carry this workload.
        """
        if self.seed is not None:
            rng = random.Random(f"workload {self.seed}")
        try:
            if self.rows:
                return self._file_flows(topology, rng)
            ports = _Ports(rng)
            return [
                _flow(number, pair, self.size_bytes, rng.randint(0, self.jitter_ns), ports.draw(pair))
                for number, pair in enumerate(self._pairs(topology, rng), start=1)
            ]
        except ConfigError as error:
            raise self._error(str(error)) from error

    def _error(self, text: str) -> SpecError:
        return SpecError(f"workload {self.name}: {text}")

    def _pairs(self, topology: Topology, rng: random.Random) -> list[pairs.Pair]:
        hosts = topology.hosts
        if len(hosts) < 2:
            raise self._error("the topology has no two hosts")
        if self.name == "alltoall":
            return pairs.all_to_all(hosts)
        if self.name == "incast":
            if self.degree >= len(hosts):
                raise self._error(f"degree must be less than the number of hosts, {len(hosts)}")
            return pairs.incast(hosts, self.degree, rng)
        if self.name == "random":
            return pairs.random_pairs(hosts, self.flows_total or len(hosts), rng)
        groups = [host.name if self.peers == "any" else host.switch for host in hosts]
        once = pairs.permutation(hosts, groups, rng)
        if once is None:
            raise self._error(
                "peers=remote needs a topology in which no switch has more than half of the hosts"
            )
        total = self.flows_total or len(once)
        return [once[number % len(once)] for number in range(total)]

    def _file_flows(self, topology: Topology, rng: random.Random) -> list[FlowSpec]:
        flows = []
        ports = _Ports(rng)
        for number, row in enumerate(self.rows, start=1):
            pair = row.endpoints(topology)
            port = ports.draw(pair) if row.sport is None else row.sport
            flows.append(_flow(number, pair, row.size_bytes, row.start_ns, port))
        return flows


def parse_workload(text: str) -> Workload:
    """The workload that words describe, or that a CSV file holds.

    Raises:
        SpecError: unknown name, bad option or bad file; one line says which.
    """
    words = parse(text, "workload")
    if words.name.endswith(".csv"):
        options = Options(words, ("seed",))
        return Workload(str(words), words.name, seed=_seed(options), rows=read_rows(Path(words.name)))
    keys = _KEYS.get(words.name)
    if keys is None:
        raise SpecError(f"workload {words.name!r} is not known; expected {', '.join(_KEYS)} or FILE.csv")
    return _from_words(words, Options(words, keys))


def _from_words(words: Words, options: Options) -> Workload:
    name = words.name
    return Workload(
        str(words),
        name,
        size_bytes=options.size_bytes("size", DEFAULT_BYTES, least=1),
        peers=options.choice("peers", ("any", "remote"), "any"),
        flows_total=options.integer("flows", 0, least=1),
        degree=options.integer("degree", None if name == "incast" else 0, least=1),
        jitter_ns=options.time_ns("jitter", 0),
        seed=_seed(options),
    )


def _seed(options: Options) -> int | None:
    return options.integer("seed", least=0) if "seed" in options else None


class _Ports:
    """Source ports that no two flows between the same hosts share, or they would be one flow to a switch."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._used: dict[pairs.Pair, set[int]] = {}

    def draw(self, pair: pairs.Pair) -> int:
        """A port for one more flow of these hosts.

        Raises:
            SpecError: they have one flow for every port there is.
        """
        used = self._used.setdefault(pair, set())
        if len(used) == len(SOURCE_PORTS):
            hosts = f"{pair[0].name} to {pair[1].name}"
            raise SpecError(f"workload: more than {len(SOURCE_PORTS)} flows from {hosts}")
        port = self._rng.choice(SOURCE_PORTS)
        while port in used:
            port = self._rng.choice(SOURCE_PORTS)
        used.add(port)
        return port


def _flow(number: int, pair: pairs.Pair, size_bytes: int, start_ns: int, sport: int) -> FlowSpec:
    sender, receiver = pair
    return FlowSpec(
        id=number,
        src=sender.ip,
        dst=receiver.ip,
        bytes=size_bytes,
        start_ns=start_ns,
        qpn=FIRST_QPN + number,
        sport=sport,
    )
