# SPDX-License-Identifier: Apache-2.0
"""What a seed draws: a network, a scheme, traffic, faults, and what disturbs switches and controllers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import Plan, plan
from tailrace.schemes.registry import SCHEMES
from tailrace.topology import Topology, parse_topology
from tailrace.words import SpecError

LAST_NS = 400_000
"""No fault and no mishap begins later; those that last are over soon after."""

QUIET_NS = 2 * LAST_NS
"""All faults and mishaps are over."""

TOPOLOGIES = (
    "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us",
    "leaf-spine:leaves=3,spines=2,hosts=2,rate=25Gbps,delay=500ns",
    "leaf-spine:leaves=2,spines=4,hosts=3,rate=100Gbps,delay=500ns",
    "leaf-spine:leaves=4,spines=3,hosts=1,rate=10Gbps,delay=2us",
    "fat-tree:k=4,rate=10Gbps,delay=1us",
    "dragonfly:p=1,a=2,h=1",
    "dragonfly:p=2,a=4,h=2",
    "slim-fly:p=1,q=5",
)
WEIGHTS = (6, 5, 4, 4, 3, 4, 1, 1)
"""Small networks break as well as large ones, and a hundred times as often in a minute."""

TRANSPORTS = ("gbn", "gbn", "sr", "dctcp", "dcqcn", "tcp", "gbn:ack_every=2", "sr:ack_every=4")
MTUS = ("512B", "1KiB", "1KiB", "4KiB")


class Kill(msgspec.Struct, frozen=True):
    """A controller is killed at a time, and another one started in its place `for_ns` later."""

    controller: int
    at_ns: int
    for_ns: int


class Break(msgspec.Struct, frozen=True):
    """All connections with a switch break at a time."""

    switch: str
    at_ns: int


class Chaos(msgspec.Struct, frozen=True):
    """What happens between switches and controllers.

    latency: mean time of a message, in intervals of link probes; spread: how much longer the longest takes
    lost, answers, silent: shares of calls whose request is lost, whose answer is, and that nobody answers
    controllers: how many there are; empty: switches have no program when the first one starts
    """

    latency: float = 0.1
    spread: float = 0.5
    lost: float = 0.0
    answers: float = 0.0
    silent: float = 0.0
    controllers: int = 1
    empty: bool = False
    kills: tuple[Kill, ...] = ()
    breaks: tuple[Break, ...] = ()


class Scenario(msgspec.Struct, frozen=True):
    """A run: the keys of an experiment, and what disturbs its controllers."""

    seed: int
    words: dict[str, Any]
    chaos: Chaos = Chaos()

    def plan(self) -> Plan:
        """The experiment.

        Raises:
            SpecError: its words do not fit together.
        """
        return plan(make({**self.words, "seed": self.seed}), "virtual")

    @property
    def faults(self) -> list[str]:
        """Those of the data plane, as words."""
        return list(self.words.get("fault", ()))


def draw(seed: int) -> Scenario:
    """The scenario of a seed; always the same, on every machine."""
    rng = random.Random(f"soak {seed}")
    while True:
        words = _words(rng)
        topology = parse_topology(words["topology"])
        words["fault"] = _faults(rng, topology)
        scenario = Scenario(seed, words, _chaos(rng, topology))
        try:
            scenario.plan()
        except SpecError:
            continue  # a scheme that does not run there, or a transport that it does not go with
        return scenario


def _words(rng: random.Random) -> dict[str, Any]:
    [topology] = rng.choices(TOPOLOGIES, WEIGHTS)
    words: dict[str, Any] = {
        "scheme": _scheme(rng),
        "topology": topology,
        "workload": _workload(rng),
        "transport": rng.choice(TRANSPORTS),
        "mtu": rng.choice(MTUS),
    }
    if rng.random() < 0.35:
        words["pfc"] = "default"
    return words


def _scheme(rng: random.Random) -> str:
    """Any scheme, with some of those keys that have a few values, each drawn."""
    name = rng.choice(SCHEMES.names)
    options = []
    for key in SCHEMES.keys(name):
        choices = key.values.split("|")
        if (
            len(choices) > 1
            and choices[0].islower()
            and rng.random() < (0.7 if key.name == "variant" else 0.2)
        ):
            options.append(f"{key.name}={rng.choice(choices)}")
    return f"{name}:{','.join(options)}" if options else name


def _workload(rng: random.Random) -> str:
    size = rng.choice(("1B", "4KiB", "32KiB", "100KB", "256KiB"))
    return rng.choice(
        (
            f"permutation:size={size}",
            f"permutation:size={size}",
            f"incast:degree=3,size={size}",
            f"random:flows={rng.randrange(1, 24)},size={size}",
            "alltoall:size=4KiB,window=2,rounds=3",
            "poisson:cdf=websearch,load=0.4,duration=60us,most=300KB",
        )
    )


def _time(rng: random.Random, most_ns: int = LAST_NS) -> int:
    """Any time, early ones more often, for there is more traffic."""
    return round(most_ns * rng.random() ** 2)


def _faults(rng: random.Random, topology: Topology) -> list[str]:
    return [_fault(rng, topology) for _ in range(rng.choices((0, 1, 2, 3), (3, 4, 3, 2))[0])]


def _fault(rng: random.Random, topology: Topology) -> str:
    at_ns = _time(rng)
    lasts_ns = rng.choice((1_000, 10_000, 50_000, 200_000)) + rng.randrange(1_000)
    span = f"at={at_ns}ns,until={at_ns + lasts_ns}ns"
    link = rng.choice(topology.links)
    name = f"{link.a}-{link.b}"
    switch = rng.choice(topology.switches).name
    return rng.choice(
        (
            f"link-down:link={name},{span}",
            f"link-down:link={name},{span}",
            f"link-slow:link={name},factor={rng.choice((0.5, 0.1, 0.02))},{span}",
            f"drop:rate={rng.choice((0.001, 0.02, 0.3))},{span}",
            f"ack-loss:rate={rng.choice((0.01, 0.3))},{span}",
            f"blackhole:pairs={rng.choice((0.1, 0.5))},where={switch},{span}",
            f"switch-restart:switch={switch},at={at_ns}ns,for={lasts_ns}ns",
            f"switch-restart:switch={switch},at={at_ns}ns,for={lasts_ns}ns",
        )
    )


def _chaos(rng: random.Random, topology: Topology) -> Chaos:
    controllers = rng.choices((1, 2), (3, 1))[0]
    some = rng.random() < 0.5

    def share() -> float:
        return rng.choice((0.0, 0.0, 0.02, 0.2)) if some else 0.0

    def times(most: int) -> Sequence[int]:
        return [_time(rng) for _ in range(rng.randrange(most + 1))] if rng.random() < 0.5 else ()

    switches = [switch.name for switch in topology.switches]
    return Chaos(
        latency=rng.choice((0.02, 0.1, 0.1, 0.3)),
        spread=rng.choice((0.5, 0.5, 0.9, 5.0)),
        lost=share(),
        answers=share(),
        silent=share(),
        controllers=controllers,
        empty=rng.random() < 0.2,
        kills=tuple(
            Kill(rng.randrange(controllers), at_ns, rng.choice((1_000, 20_000, 100_000)))
            for at_ns in times(2)
        ),
        breaks=tuple(Break(rng.choice(switches), at_ns) for at_ns in times(4)),
    )
