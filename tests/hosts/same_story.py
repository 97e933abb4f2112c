# SPDX-License-Identifier: Apache-2.0
"""Runs NICs of all kinds through unruly networks, and prints what they did; for comparing implementations."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
import sys
from pathlib import Path
from typing import Any

from msgspec import structs

import tailrace.hosts.nic.nic
from tailrace import hosts
from tailrace.hosts.options.dcqcn import DcqcnConfig, HermesNicConfig
from tailrace.hosts.options.hf2t import Hf2tConfig
from tailrace.hosts.options.nic import ALGORITHMS, HERMES, FlowcutNicConfig, NicConfig, SteeringConfig
from tailrace.hosts.options.tcp import TcpConfig
from tests.codec.frames import Data
from tests.hosts.network import RATE_BPS, VirtualNetwork, flow
from tests.hosts.steering.fabric import Paths

FLOWCUT = FlowcutNicConfig(
    rtt_threshold=1.1, growth_threshold=0.1, min_left=0, age_ns=900_000, ns_per_byte=1.0
)
KINDS: dict[str, dict[str, Any]] = {
    "gbn": {},
    "sr": {"transport": "sr"},
    "mp-rdma": {"transport": "mp-rdma"},
    "dctcp": {"transport": "dctcp"},
    **{
        name: {"transport": "dctcp", "steering": SteeringConfig(name, 5, 1, timer_ns=90_000, keep_ns=40_000)}
        for name in ALGORITHMS
        if name != HERMES
    },
    "dcqcn": {"transport": "dcqcn", "dcqcn": DcqcnConfig(counter_bytes=20_000, timer_ns=9_000, cnp_ns=7_000)},
    "hermes": {
        "transport": "dcqcn",
        "window_bytes": 0,
        "steering": SteeringConfig(HERMES),
        "hermes": HermesNicConfig(
            hop_ns=2_000, size_bytes=2_000, interval_ns=90_000, least_packets=5, failed_ns=200_000
        ),
    },
    "tcp": {
        "transport": "tcp",
        "window_bytes": 0,
        "ack_every": 4,
        "ack_delay_ns": 15_000,
        "tcp": TcpConfig(burst_bytes=2_000),
    },
    "hf2t": {
        "hf2t": Hf2tConfig(9_000, percentile=9_000, min_thr=5, max_thr=20, train_gaps=100),
        "link_rate_bps": RATE_BPS,
        "measure_gaps": True,
    },
    "coalesced": {"ack_every": 3, "flow_rate_bps": 3_000_000_000},
    "dctcp, coalesced": {"transport": "dctcp", "ack_every": 3, "ack_delay_ns": 15_000},
    "real payload": {"virtual_payload": False, "first_psn": 2**24 - 9},
    "flowcut": {"flowcut_nic": FLOWCUT},
    "flowcut, coalesced": {"flowcut_nic": FLOWCUT, "ack_every": 4, "ack_delay_ns": 15_000},
}
CASES = [("gbn", 0.0), ("sr", 0.0), ("mp-rdma", 0.0), ("tcp", 0.0), *((kind, 0.02) for kind in KINDS)]


def unruly(rng: random.Random, loss: float):
    def fate(now_ns, frame, parsed):
        return (
            None if rng.random() < loss else 1000 + rng.randint(0, 9_000 if isinstance(parsed, Data) else 0)
        )

    return fate


def config_of(kind: str) -> NicConfig:
    """Small packets and short timers, so that much happens to few."""
    return NicConfig(
        **{
            "mtu_bytes": 500,
            "window_bytes": 16_000,
            "rto_ns": 300_000,
            "rto_backoff": 2,
            "reorder_packets": 9,
            "virtual_payload": True,
            **KINDS[kind],
        }
    )


def sent_sha256(network: VirtualNetwork) -> str:
    """Of all frames that NICs sent, with who sent them when."""
    frames = hashlib.sha256()
    for arrival in network.sent:
        frames.update(f"{arrival.now_ns} {arrival.nic.ip} {arrival.frame.virtual_bytes} ".encode())
        frames.update(arrival.frame.data)
    return frames.hexdigest()


def run(kind: str, loss: float) -> dict[str, Any]:
    config = config_of(kind)
    # switches mark and trim, too; only dctcp speaks of that
    lossy = 0.05 if loss else 0.0
    paths = Paths([3000, 4000, 5000, 6000], marks={0: lossy, 2: 0.5}, trims={1: lossy}, seed=5)
    network = paths.network(config, 3)
    network.fate = unruly(random.Random(7), loss)
    for number in range(12):
        spec = flow(number, 700 * number + 9_000, src=1 + number % 3, dst=1 + (number + 1) % 3)
        network.add(structs.replace(spec, after=(number - 3,) if number > 5 else ()))
    network.run()
    return {
        "sent": len(network.sent),
        "frames": sent_sha256(network),
        "records": [dataclasses.asdict(record) for record in network.records()],
        "gaps": [nic.gaps.bins() for nic in network.nics if nic.gaps is not None],
        "learned": [
            (nic.learner.t_ns, nic.learner.trainings) for nic in network.nics if nic.learner is not None
        ],
        "seen": [repr(seen) for nic in network.nics for seen in nic.records()],
    }


def main() -> None:
    report = {
        "implementation": hosts.IMPLEMENTATION,
        "file": Path(tailrace.hosts.nic.nic.__file__).name,
        "runs": [run(kind, loss) for kind, loss in CASES],
    }
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main()
