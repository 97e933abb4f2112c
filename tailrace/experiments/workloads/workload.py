# SPDX-License-Identifier: Apache-2.0
"""Workloads: words such as ``permutation:size=1MiB``, or a CSV file -> the flows of an experiment.

    permutation:SIZES,PEERS,flows=,jitter=,seed=       every host sends to one other and hears from one
    alltoall:size=,window=,hosts=,background=,PEERS,jitter=,seed=
                                                       every host sends to every other
    incast:degree=,size=|total=,bystanders=,to=,from=,PEERS,jitter=,seed=
                                                       `degree` hosts send to one: incast.py
    adversarial:size=,jitter=,seed=                    a permutation that hurts minimal routing most, on a
                                                       Dragonfly or a Slim Fly: adversarial.py
    motivating:size=,free=,background=,flows=,from=,path=,ahead=,seed=
                                                       one flow in a Dragonfly whose groups are congested, all
                                                       but that of its end and `free` others: motivating.py
    random:flows=,SIZES,PEERS,jitter=,seed=            pairs drawn at random, all at once
    random:messages=,SIZES,PEERS,jitter=,seed=         every host sends so many messages, one after the other,
                                                       each to a partner drawn for it (Flowcut §III-B2)
    poisson:load=,of=,duration=,senders=,bursts=,every=,from=,burst=,bytes=,SIZES,PEERS,seed=
                                                       every host starts flows at random: poisson.py, next to
                                                       bursts: bursts.py
    paused:load=,duration=,SIZES,pairs=,servers=,burst=,bytes=,bursts=,at=,long=,from=,seed=
                                                       pairs of hosts at two leaves, next to a receiver to
                                                       which others send bursts: paused.py
    allreduce:algo=,size=,hosts=,background=,seed=     one allreduce, by algo=ring, butterfly or halving:
                                                       collective.py
    FILE.csv                                           columns src,dst,bytes,start: csv_file.py

SIZES     size=: bytes of each flow or, of an allreduce, of the vector; 1 MiB without it. Or cdf=: a measured
          distribution, by name or FILE.toml (cdf_file.py); most=: what is larger in it is as large as that
PEERS     peers=remote or cross=true: only hosts of different switches are paired, so that all traffic crosses
          the fabric (CONGA's rule, Flowcut §III-B2); peers=group: only hosts in different groups of switches;
          peers=any without it
flows     in total; without it as many as there are hosts; a permutation deals more of them round the hosts.
          motivating: of each host that loads a group; ahead=: so long before the one flow; path=scheme: on
          paths of the scheme's choice, not a hash's; from=all: hosts of all congested groups, not of the same
window    flows that a host has under way at most; without it all at once
hosts     how many hosts take part, drawn at random; without it all
senders   so many flows to a receiver at once at most, as far as can be known beforehand: poisson.py
background    size of flows that load the network and are not measured: with an allreduce or an all-to-all a
          permutation of the hosts that take no part (background.py)
bystanders    so many of the other hosts form a permutation
to, from  the receiver, and the first of the senders, which are the hosts from there on; else drawn at random
load      share of a host's link rate that its flows' bytes ask for; new ones start for `duration`. With
          of=fabric that of the leaves' links to other switches, all together; `paused`: of the first leaf's
total     what all senders of an incast send together, each the same (RLB §VI-B.3)
pairs, servers    how many hosts of each leaf send beside each other, and how many send the bursts
burst, bytes    flows of such a server at once, and their size
bursts, at      how often in a row, from when on; poisson: how many hosts send to one that is drawn, `every`
          so often, flows that are not measured; from=leaf: hosts of its own leaf
long, from    size of one flow from the first leaf to the receiver of the bursts, and when it starts
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

from tailrace.codec.layers.bth import SOURCE_PORTS
from tailrace.experiments.plan.reckon import counted
from tailrace.experiments.workloads.adversarial import Adversarial
from tailrace.experiments.workloads.allreduce import ALGORITHMS, Allreduce
from tailrace.experiments.workloads.background import Shared
from tailrace.experiments.workloads.bursts import Bursty
from tailrace.experiments.workloads.classes import PLAIN
from tailrace.experiments.workloads.congested_groups import GROUP, HASH, PATHS, SENDERS, Motivating
from tailrace.experiments.workloads.csv_file import Rows, read_rows
from tailrace.experiments.workloads.incast import Incast
from tailrace.experiments.workloads.load import HOSTS as OF_HOSTS
from tailrace.experiments.workloads.load import OF
from tailrace.experiments.workloads.pairs import APART, HOSTS, SWITCHES
from tailrace.experiments.workloads.patterns import AllToAll, ClosedLoop, Permutation, RandomPairs
from tailrace.experiments.workloads.paused import Paused
from tailrace.experiments.workloads.poisson import Poisson
from tailrace.experiments.workloads.ports import SourcePorts
from tailrace.experiments.workloads.sizes import SizeCdf
from tailrace.experiments.workloads.sizes_file import find_cdf
from tailrace.experiments.workloads.transfer import Pattern, PatternError
from tailrace.hosts.errors import ConfigError
from tailrace.hosts.flows.dependencies import check_dependencies
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.topology import Topology
from tailrace.words import Options, SpecError, parse

__all__ = ["DEFAULT_BYTES", "FIRST_QPN", "SOURCE_PORTS", "Workload", "parse_workload"]

FIRST_QPN = 0x100
"""The first queue pair of a flow; lower numbers are special in InfiniBand."""

DEFAULT_BYTES = 1 << 20
DEFAULT_BACKGROUND_BYTES = 64 << 20
"""Of a flow that is not measured: more than is sent while the others are under way, in most cases."""

DEFAULT_LOAD_FLOWS = 32
"""Flows of each host that congests a group."""

ANYWHERE, LEAF = BURST_FROM = ("any", "leaf")
"""Whose hosts send bursts: all, or those of the receiver's leaf."""

DEFAULT_BURST_FLOWS = 40
DEFAULT_BURST_BYTES = 64_000
DEFAULT_BURSTS = 2
DEFAULT_LONG_BYTES = 250_000_000
"""Bursts, and the long flow to the same receiver: RLB §II-B."""

DEFAULT_FREE = 2
"""Groups without traffic, besides that of the monitored flow's destination."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Flows, and the class (classes.py) of each that is in one, by number."""

    flows: list[FlowSpec]
    classes: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Workload:
    """What an experiment sends: `pattern`, made from `words`; a `seed` of its own, or None."""

    words: str
    name: str
    pattern: Pattern
    seed: int | None = None

    def flows(self, topology: Topology, rng: random.Random) -> list[FlowSpec]:
        """The flows of `traffic`, for whom their classes do not matter."""
        return self.traffic(topology, rng).flows

    def traffic(self, topology: Topology, rng: random.Random) -> Traffic:
        """The flows, by rising id from 1, and their classes; the same for the same numbers from `rng`.

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

    def _numbered(self, topology: Topology, rng: random.Random) -> Traffic:
        ports = SourcePorts(rng)
        if isinstance(self.pattern, Rows):
            self.pattern.reserve(topology, ports)
        flows = []
        classes = {}
        for number, transfer in enumerate(counted(self.pattern.transfers(topology, rng)), start=1):
            sender, receiver, size_bytes, start_ns, after, sport, flow_class, steering = transfer
            if flow_class != PLAIN:
                classes[number] = flow_class
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
                    steering=steering,
                )
            )
        if isinstance(self.pattern, Rows):
            # what a pattern makes waits for nothing that never comes, but a file may hold anything
            check_dependencies(flows)
        return Traffic(flows, classes)


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
    return Permutation(_sizes(options), _apart(options), _flows(options), _jitter_ns(options))


def _all_to_all(options: Options) -> Pattern:
    pattern = AllToAll(
        _size_bytes(options),
        _apart(options),
        hosts_total=_hosts(options),
        window=options.integer("window", 0, least=1),
        jitter_ns=_jitter_ns(options),
    )
    return _shared(options, pattern)


def _incast(options: Options) -> Pattern:
    degree = options.integer("degree", least=1)
    return Incast(
        _share_bytes(options, degree),
        degree,
        _apart(options),
        _jitter_ns(options),
        receiver=options.text("to", ""),
        first=options.text("from", ""),
        bystanders=options.integer("bystanders", 0, least=2),
    )


def _adversarial(options: Options) -> Pattern:
    return Adversarial(_size_bytes(options), _jitter_ns(options))


def _motivating(options: Options) -> Pattern:
    free = options.integer("free", DEFAULT_FREE, least=0)
    flows = options.integer("flows", DEFAULT_LOAD_FLOWS, least=1)
    return Motivating(
        _size_bytes(options),
        free,
        _background_bytes(options),
        flows,
        senders=options.choice("from", SENDERS, GROUP),
        path=options.choice("path", PATHS, HASH),
        ahead_ns=options.time_ns("ahead", 0),
    )


def _random(options: Options) -> Pattern:
    if "messages" not in options:
        return RandomPairs(_sizes(options), _apart(options), _flows(options), _jitter_ns(options))
    if "flows" in options:
        raise SpecError(f"{options.words.title}: expected either flows= or messages=")
    messages = options.integer("messages", least=1)
    return ClosedLoop(_sizes(options), messages, _apart(options), _jitter_ns(options))


def _poisson(options: Options) -> Pattern:
    load, sizes = _load(options)
    duration_ns, senders = options.time_ns("duration", least=1), options.integer("senders", 0, least=1)
    apart, of = _apart(options), options.choice("of", OF, OF_HOSTS)
    pattern = Poisson(sizes, load, duration_ns, apart, senders, of)
    degree = options.integer("bursts", 0, least=1)
    if not degree:
        for key in ("every", "from", *_BURST):
            if key in options:
                raise options.error(key, "given only where bursts is")
        return pattern
    every_ns = options.time_ns("every", least=1)
    flows, size_bytes = _burst(options, 1)
    near = options.choice("from", BURST_FROM, ANYWHERE) == LEAF
    return Bursty(pattern, degree, flows, size_bytes, every_ns, duration_ns, near)


def _paused(options: Options) -> Pattern:
    load, sizes = _load(options)
    flows, size_bytes = _burst(options, DEFAULT_BURST_FLOWS)
    return Paused(
        sizes,
        load,
        options.time_ns("duration", least=1),
        pairs_total=options.integer("pairs", least=1),
        servers=options.integer("servers", least=1),
        burst_flows=flows,
        burst_bytes=size_bytes,
        bursts=options.integer("bursts", DEFAULT_BURSTS, least=0),
        at_ns=options.time_ns("at", 0),
        long_bytes=options.size_bytes("long", DEFAULT_LONG_BYTES, least=1),
        long_at_ns=options.time_ns("from", 0),
    )


def _burst(options: Options, flows: int) -> tuple[int, int]:
    """Flows of one host in one burst, and their size."""
    return options.integer("burst", flows, least=1), options.size_bytes("bytes", DEFAULT_BURST_BYTES, least=1)


def _load(options: Options) -> tuple[float, SizeCdf]:
    """The load of Poisson arrivals, and their sizes."""
    load = options.number("load", least=0, most=1)
    if math.isclose(load, 0):
        raise options.error("load", "more than 0")
    if "size" not in options and "cdf" not in options:
        raise SpecError(f"{options.words.title}: expected either size= or cdf=")
    return load, _sizes(options)


def _allreduce(options: Options) -> Pattern:
    algorithm = options.choice("algo", tuple(ALGORITHMS), "ring")
    return _shared(options, Allreduce(algorithm, _size_bytes(options), _hosts(options)))


@dataclass(frozen=True, slots=True)
class _Kind:
    """A name in words: its keys, and how to make its pattern of them."""

    make: Callable[[Options], Pattern]
    keys: tuple[str, ...]


_SIZES = ("size", "cdf", "most")
_REMOTE = ("peers", "cross")
_BURST = ("burst", "bytes")
_PAUSED = ("pairs", "servers", *_BURST, "bursts", "at", "long", "from")
_KINDS: Mapping[str, _Kind] = {
    "permutation": _Kind(_permutation, (*_SIZES, *_REMOTE, "flows", "jitter", "seed")),
    "alltoall": _Kind(_all_to_all, ("size", "window", "hosts", "background", *_REMOTE, "jitter", "seed")),
    "incast": _Kind(
        _incast, ("degree", "size", "total", "bystanders", "to", "from", *_REMOTE, "jitter", "seed")
    ),
    "adversarial": _Kind(_adversarial, ("size", "jitter", "seed")),
    "motivating": _Kind(
        _motivating, ("size", "free", "background", "flows", "from", "path", "ahead", "seed")
    ),
    "random": _Kind(_random, (*_SIZES, "flows", "messages", *_REMOTE, "jitter", "seed")),
    "poisson": _Kind(
        _poisson,
        ("load", "of", "duration", "senders", "bursts", "every", "from", *_BURST, *_SIZES, *_REMOTE, "seed"),
    ),
    "paused": _Kind(_paused, ("load", "duration", *_SIZES, *_PAUSED, "seed")),
    "allreduce": _Kind(_allreduce, ("algo", "size", "hosts", "background", "seed")),
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


def _share_bytes(options: Options, senders: int) -> int:
    """What each of them sends, where either that is given or what all send together."""
    if "total" not in options:
        return _size_bytes(options)
    if "size" in options:
        raise SpecError(f"{options.words.title}: expected either size= or total=")
    return -(-options.size_bytes("total", least=1) // senders)


def _flows(options: Options) -> int:
    return options.integer("flows", 0, least=1)


def _hosts(options: Options) -> int:
    return options.integer("hosts", 0, least=2)


def _jitter_ns(options: Options) -> int:
    return options.time_ns("jitter", 0)


def _background_bytes(options: Options) -> int:
    return options.size_bytes("background", DEFAULT_BACKGROUND_BYTES, least=1)


def _shared(options: Options, pattern: Pattern) -> Pattern:
    """The pattern, in a shared network where there is background."""
    return Shared(pattern, _background_bytes(options)) if "background" in options else pattern


def _apart(options: Options) -> str:
    """What the hosts of a pair do not share, one of APART."""
    apart = options.choice("peers", APART, HOSTS)
    if "cross" not in options:
        return apart
    cross = options.flag("cross")
    if "peers" in options and cross != (apart != HOSTS):
        raise SpecError(f"{options.words.title}: peers= and cross= contradict each other")
    return SWITCHES if cross and apart == HOSTS else apart


def _seed(options: Options) -> int | None:
    return options.integer("seed", least=0) if "seed" in options else None
