# SPDX-License-Identifier: Apache-2.0
"""Draws a scenario from a seed: network, scheme, traffic, faults, and disturbances of the control plane."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from checks.soak.scenario import LONGEST_NS, Break, Chaos, Full, Kill, Scenario
from tailrace.schemes.errors import IntentError
from tailrace.schemes.intent import intent
from tailrace.schemes.registry import SCHEMES
from tailrace.sim.control import probe_interval_ns
from tailrace.sim.job import Job
from tailrace.spec import SpecError
from tailrace.topology import Link, Topology

VERSION = 4
"""Version of this generator: within a version, a seed always gives the same scenario."""

ROUNDS = 7
"""No fault and no disturbance begins after this number of rounds of link probes."""

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
WEIGHTS = (800, 400, 160, 160, 40, 400, 4, 1)
"""Weights of TOPOLOGIES: small networks show the failures of large ones, and run a hundred times as fast."""

TRANSPORTS = ("gbn", "gbn", "sr", "dctcp", "dcqcn", "tcp", "gbn:ack_every=2", "sr:ack_every=4")
MTUS = ("512B", "1KiB", "1KiB", "4KiB")


OFTEN = ("flowcut", "flowcut", "flowcut", "rlb")
"""Added to the list of all schemes, so that schemes with more mechanisms are drawn more often."""


def draw(seed: int) -> Scenario:
    """The scenario of a seed; always the same, on every machine."""
    rng = random.Random(f"soak {VERSION} {seed}")
    while True:
        scenario = Scenario(seed, _settings(rng))
        try:
            job = scenario.plan().job
            times = _Times(rng, probe_interval_ns(job.topology, job.scheme.frame_bytes))
            scenario.settings["fault"] = _faults(rng, times, job)
            scenario = replace(scenario, chaos=_chaos(rng, times, job))
            scenario.plan()
            if scenario.chaos.old:
                earlier = scenario.earlier(job.topology)
                intent(job.topology, earlier, job.switches)
        except (SpecError, IntentError):
            continue  # the scheme does not support this topology or this transport
        return scenario


@dataclass(frozen=True, slots=True)
class _Times:
    """Draws times; many are about as long as the actions of a controller."""

    rng: random.Random
    interval_ns: int

    @property
    def until_ns(self) -> int:
        return min(LONGEST_NS, ROUNDS * self.interval_ns)

    def at_ns(self) -> int:
        """A time before `until_ns`; early times are likelier, as there is more traffic."""
        return round(self.until_ns * self.rng.random() ** 2)

    def for_ns(self) -> int:
        """A duration, from much less than a round of probes to more than it takes to declare a link down."""
        return round(self.rng.choice((0.04, 0.4, 2, 6)) * self.rng.uniform(0.8, 1.2) * self.interval_ns)


def _settings(rng: random.Random) -> dict[str, Any]:
    [topology] = rng.choices(TOPOLOGIES, WEIGHTS)
    settings: dict[str, Any] = {
        "scheme": _scheme(rng),
        "topology": topology,
        "workload": _workload(rng),
        "transport": rng.choice(TRANSPORTS),
        "mtu": rng.choice(MTUS),
    }
    if rng.random() < 0.35:
        settings["pfc"] = "default"
    return settings


def _scheme(rng: random.Random, *names: str) -> str:
    """A random scheme, out of `names` if given; some of its keys that list their values get random values."""
    name = rng.choice(names or (*SCHEMES.names, *OFTEN))
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


def _faults(rng: random.Random, times: _Times, job: Job) -> list[str]:
    topology = job.topology
    faults = [_fault(rng, times, topology) for _ in range(rng.choices((0, 1, 2, 3), (3, 4, 3, 2))[0])]
    # senders that choose among fixed paths (steering, or no repair of routes) try dead paths for ever
    # (docs/schemes/spritz-details.md, Failed links)
    fixed_paths = job.nic.steering is not None or getattr(job.scheme, "repair", None) is False
    if rng.random() < 0.08 and not fixed_paths:
        faults.append(f"link-down:link={_name(rng.choice(topology.links))},at={times.at_ns()}ns")
    return faults


def _name(link: Link) -> str:
    return f"{link.a}-{link.b}"


def _fault(rng: random.Random, times: _Times, topology: Topology) -> str:
    at_ns, lasts_ns = times.at_ns(), times.for_ns()
    span = f"at={at_ns}ns,until={at_ns + lasts_ns}ns"
    name = _name(rng.choice(topology.links))
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


def _chaos(rng: random.Random, times: _Times, job: Job) -> Chaos:
    controllers = rng.choices((1, 2, 3), (12, 5, 1))[0]
    has_shares = rng.random() < 0.5

    def share(*choices: float) -> float:
        return rng.choice((0.0, 0.0, *choices)) if has_shares else 0.0

    def up_to(most: int) -> range:
        return range(rng.randrange(most + 1) if rng.random() < 0.5 else 0)

    switches = [switch.name for switch in job.topology.switches]
    links = range(len(job.topology.links))
    old_draw = rng.random()
    return Chaos(
        until_ns=times.until_ns,
        latency=rng.choice((0.02, 0.1, 0.1, 0.3)),
        spread=rng.choice((0.5, 0.5, 0.9, 5.0)),
        lost=share(0.02, 0.2),
        responses=share(0.02, 0.2),
        silent=share(0.02, 0.2),
        twice=share(0.2),
        crashes=share(0.1, 0.5),
        digests=share(0.5),
        controllers=controllers,
        same=controllers > 1 and rng.random() < 0.3,
        empty=rng.random() < 0.15,
        stale=tuple(sorted(rng.sample(links, rng.randrange(1, 3)))) if rng.random() < 0.15 else (),
        old=_scheme(rng, *(job.scheme.name.split(":")[:1] if old_draw < 0.05 else ()))
        if old_draw < 0.1
        else "",
        old_ns=times.at_ns() if old_draw < 0.1 and rng.random() < 0.5 else 0,
        kills=tuple(Kill(rng.randrange(controllers), times.at_ns(), times.for_ns()) for _ in up_to(2)),
        breaks=tuple(Break(rng.choice(switches), times.at_ns()) for _ in up_to(4)),
        full=tuple(
            Full(rng.choice(switches), times.at_ns(), times.for_ns())
            for _ in range(rng.randrange(3) if rng.random() < 0.2 else 0)
        ),
    )
