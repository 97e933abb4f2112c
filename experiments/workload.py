# SPDX-License-Identifier: Apache-2.0
"""Workloads: words such as ``permutation:size=1MiB``, or a CSV file -> the flows of an experiment.

    permutation:SIZES,PEERS,flows=,jitter=,seed=       every host sends to one other and hears from one
    alltoall:size=,window=,hosts=,PEERS,jitter=,seed=  every host sends to every other
    incast:degree=,size=,PEERS,jitter=,seed=           `degree` hosts send to one
    random:flows=,SIZES,PEERS,jitter=,seed=            pairs drawn at random, all at once
    random:messages=,SIZES,PEERS,jitter=,seed=         every host sends so many messages, one after the other,
                                                       each to a partner drawn for it (Flowcut §III-B2)
    poisson:load=,duration=,SIZES,PEERS,seed=          every host starts flows at random: poisson.py
    allreduce:algo=,size=,hosts=,seed=                 one allreduce, by algo=ring, butterfly or halving:
                                                       collective.py
    FILE.csv                                           columns src,dst,bytes,start: csv_file.py

SIZES     size=: bytes of each flow or, of an allreduce, of the vector; 1 MiB without it. Or cdf=: a measured
          distribution, by name or FILE.toml (cdf_file.py); most=: what is larger in it is as large as that
PEERS     peers=remote or cross=true: only hosts of different switches are paired, so that all traffic crosses
          the fabric (CONGA's rule, Flowcut §III-B2); peers=any without it
flows     in total; without it as many as there are hosts; a permutation deals more of them round the hosts
window    flows that a host has under way at most; without it all at once
hosts     how many hosts take part, drawn at random; without it all
load      share of a host's link rate that its flows' bytes ask for; new ones start for `duration`
jitter    starts are spread evenly at random from 0 to that time
seed      overrides the experiment's

Flows that wait for others do so by FlowSpec.after, at the sending host; so they do on every target.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.cdf_file import find_cdf
from experiments.collective import ALGORITHMS, Allreduce
from experiments.csv_file import Rows, read_rows
from experiments.patterns import AllToAll, ClosedLoop, Incast, Permutation, RandomPairs
from experiments.poisson import Poisson
from experiments.ports import SOURCE_PORTS, SourcePorts
from experiments.size_cdf import SizeCdf
from experiments.transfer import Pattern, PatternError
from hosts.dependencies import check_dependencies
from hosts.errors import ConfigError
from hosts.flow import FlowSpec
from spec import Options, SpecError, parse
from topology import Topology

__all__ = ["DEFAULT_BYTES", "FIRST_QPN", "SOURCE_PORTS", "Workload", "parse_workload"]

FIRST_QPN = 0x100
"""The first queue pair of a flow; lower numbers are special in InfiniBand."""

DEFAULT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Workload:
    """What an experiment sends: `pattern`, made from `words`; a `seed` of its own, or None."""

    words: str
    name: str
    pattern: Pattern
    seed: int | None = None

    def flows(self, topology: Topology, rng: random.Random) -> list[FlowSpec]:
        """The flows, by rising id from 1; the same for the same numbers from `rng`.

        Args:
            topology: at full speed; starts are times at full speed, too.

        Raises:
            SpecError: the topology cannot carry this workload.
        """
        if self.seed is not None:
            rng = random.Random(f"workload {self.seed}")
        try:
            return self._numbered(topology, rng)
        except (PatternError, ConfigError) as error:
            raise SpecError(f"workload {self.name}: {error}") from error

    def _numbered(self, topology: Topology, rng: random.Random) -> list[FlowSpec]:
        ports = SourcePorts(rng)
        if isinstance(self.pattern, Rows):
            self.pattern.reserve(topology, ports)
        flows = []
        for number, transfer in enumerate(self.pattern.transfers(topology, rng), start=1):
            sender, receiver, size_bytes, start_ns, after, sport = transfer
            if sport is None:
                sport = ports.draw(sender, receiver)
            flows.append(
                FlowSpec(
                    id=number,
                    src=sender.ip,
                    dst=receiver.ip,
                    bytes=size_bytes,
                    start_ns=start_ns,
                    qpn=FIRST_QPN + number,
                    sport=sport,
                    after=after,
                )
            )
        if isinstance(self.pattern, Rows):
            # what a pattern makes waits for nothing that never comes, but a file may hold anything
            check_dependencies(flows)
        return flows


def parse_workload(text: str) -> Workload:
    """The workload that words describe, or that a CSV file holds.

    Raises:
        SpecError: unknown name, bad option or bad file; one line says which.
    """
    words = parse(text, "workload")
    if words.name.endswith(".csv"):
        options = Options(words, ("seed",))
        return Workload(str(words), words.name, read_rows(Path(words.name)), _seed(options))
    kind = _KINDS.get(words.name)
    if kind is None:
        raise SpecError(f"workload {words.name!r} is not known; expected {', '.join(_KINDS)} or FILE.csv")
    options = Options(words, kind.keys)
    return Workload(str(words), words.name, kind.make(options), _seed(options))


def _permutation(options: Options) -> Pattern:
    return Permutation(_sizes(options), _remote(options), _flows(options), _jitter_ns(options))


def _all_to_all(options: Options) -> Pattern:
    return AllToAll(
        _size_bytes(options),
        _remote(options),
        hosts_total=_hosts(options),
        window=options.integer("window", 0, least=1),
        jitter_ns=_jitter_ns(options),
    )


def _incast(options: Options) -> Pattern:
    degree = options.integer("degree", least=1)
    return Incast(_size_bytes(options), degree, _remote(options), _jitter_ns(options))


def _random(options: Options) -> Pattern:
    if "messages" not in options:
        return RandomPairs(_sizes(options), _remote(options), _flows(options), _jitter_ns(options))
    if "flows" in options:
        raise SpecError(f"{options.words.title}: expected either flows= or messages=")
    messages = options.integer("messages", least=1)
    return ClosedLoop(_sizes(options), messages, _remote(options), _jitter_ns(options))


def _poisson(options: Options) -> Pattern:
    load = options.number("load", least=0, most=1)
    if math.isclose(load, 0):
        raise options.error("load", "more than 0")
    if "size" not in options and "cdf" not in options:
        raise SpecError(f"{options.words.title}: expected either size= or cdf=")
    return Poisson(_sizes(options), load, options.time_ns("duration", least=1), _remote(options))


def _allreduce(options: Options) -> Pattern:
    algorithm = options.choice("algo", tuple(ALGORITHMS), "ring")
    return Allreduce(algorithm, _size_bytes(options), _hosts(options))


@dataclass(frozen=True, slots=True)
class _Kind:
    """A name in words: its keys, and how to make its pattern of them."""

    make: Callable[[Options], Pattern]
    keys: tuple[str, ...]


_SIZES = ("size", "cdf", "most")
_REMOTE = ("peers", "cross")
_KINDS: Mapping[str, _Kind] = {
    "permutation": _Kind(_permutation, (*_SIZES, *_REMOTE, "flows", "jitter", "seed")),
    "alltoall": _Kind(_all_to_all, ("size", "window", "hosts", *_REMOTE, "jitter", "seed")),
    "incast": _Kind(_incast, ("degree", "size", *_REMOTE, "jitter", "seed")),
    "random": _Kind(_random, (*_SIZES, "flows", "messages", *_REMOTE, "jitter", "seed")),
    "poisson": _Kind(_poisson, ("load", "duration", *_SIZES, *_REMOTE, "seed")),
    "allreduce": _Kind(_allreduce, ("algo", "size", "hosts", "seed")),
}


def _sizes(options: Options) -> SizeCdf:
    if "cdf" not in options:
        if "most" in options:
            raise SpecError(f"{options.words.title}: most= is for cdf= only")
        return SizeCdf.always(_size_bytes(options))
    if "size" in options:
        raise SpecError(f"{options.words.title}: expected either size= or cdf=")
    cdf = find_cdf(options.text("cdf"))
    return cdf.clipped(options.size_bytes("most", least=1)) if "most" in options else cdf


def _size_bytes(options: Options) -> int:
    return options.size_bytes("size", DEFAULT_BYTES, least=1)


def _flows(options: Options) -> int:
    return options.integer("flows", 0, least=1)


def _hosts(options: Options) -> int:
    return options.integer("hosts", 0, least=2)


def _jitter_ns(options: Options) -> int:
    return options.time_ns("jitter", 0)


def _remote(options: Options) -> bool:
    """Whether no flow may stay below one switch."""
    remote = options.choice("peers", ("any", "remote"), "any") == "remote"
    if "cross" not in options:
        return remote
    cross = options.flag("cross")
    if "peers" in options and cross != remote:
        raise SpecError(f"{options.words.title}: peers= and cross= contradict each other")
    return cross


def _seed(options: Options) -> int | None:
    return options.integer("seed", least=0) if "seed" in options else None
