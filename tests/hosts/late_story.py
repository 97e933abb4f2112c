# SPDX-License-Identifier: Apache-2.0
"""Runs NICs where frames are lost and come again late, with and without NICs that let go of what has ended, and
prints what each did. Interpreted NICs only: it changes them.
"""

from __future__ import annotations

import dataclasses
import json
import random
import sys
from typing import Any

from msgspec import structs

from tailrace.hosts.nic.nic import Nic
from tests.codec.frames import Data
from tests.hosts.network import flow
from tests.hosts.same_story import KINDS, config_of, sent_sha256
from tests.hosts.steering.fabric import Paths

SEEDS = 2
LOSS, AGAIN = 0.03, 0.1
HOSTS = 3


def run(kind: str, seed: int) -> dict[str, Any]:
    """Flows that wait for others, of which frames are lost, and data comes again after up to ten times the RTT."""
    rng = random.Random(seed)
    network = Paths([3000, 4000, 5000, 6000], marks={0: 0.05, 2: 0.5}, trims={1: 0.05}, seed=seed).network(
        config_of(kind), HOSTS
    )
    live: list[int] = []

    def fate(now_ns, frame, parsed):
        live.append(sum(nic.connections for nic in network.nics))
        if isinstance(parsed, Data) and rng.random() < AGAIN:
            again = now_ns + rng.randint(10_000, 200_000)
            target = next(
                nic for nic in network.nics if nic.address == int.from_bytes(frame.data[30:34], "big")
            )
            network.at(again, lambda: network.hand_in(target, frame.data, frame.virtual_bytes))
        return None if rng.random() < LOSS else 1000 + rng.randint(0, 9_000)

    network.fate = fate
    for number in range(18):
        spec = flow(number, rng.randint(1, 9_000), src=1 + number % HOSTS, dst=1 + (number + 1) % HOSTS)
        network.add(structs.replace(spec, after=(number - HOSTS,) if number >= 2 * HOSTS else ()))
    network.run()
    return {
        "frames": sent_sha256(network),
        "records": [dataclasses.asdict(record) for record in network.records()],
        "most": max(live),
        "left": sum(nic.connections for nic in network.nics),
    }


def main() -> None:
    rest = Nic._retire_receiver
    stories = []
    for kind in KINDS:
        for seed in range(SEEDS):
            Nic._retire_receiver = rest  # type: ignore[method-assign]
            let_go = run(kind, seed)
            Nic._retire_receiver = lambda self, receiver: None  # type: ignore[method-assign]
            stories.append({"kind": kind, "seed": seed, "let_go": let_go, "kept": run(kind, seed)})
    json.dump(stories, sys.stdout)


if __name__ == "__main__":
    main()
