# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/programs: three exercises of the p4lang tutorials on a network in virtual time.

    python examples/programs/figures.py ecn|link_monitor|load_balance FOLDER PICTURE.svg

FOLDER is the exercise's, with the solution compiled to FOLDER/build (docs/programs says how). For `ecn`
FOLDER/plain has the exercise itself, compiled as it is: it forwards, and marks nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import struct
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from math import nan
from pathlib import Path

from matplotlib.figure import Figure
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap

import tailrace
from tailrace.results.result import Result

NS_PER_S, NS_PER_MS = 1e9, 1e6
PERIOD_S = 0.1
PROBE_TYPE = 0x812
PROBE_PORTS = (4, 1, 4, 1, 3, 2, 3, 2, 1)
"""The way of the exercise's probe from h1 through all four switches, twice, back to h1."""

HOP = struct.Struct(">BBI6s6s")
"""What a switch adds to a probe: its id, port, bytes since the last probe, times of the last and this one."""

CONNECTIONS, SEEDS = (1, 2, 4, 8, 16, 32, 64), range(5)
FRAMES, FRAMES_PER_S, PAYLOAD_BYTES = 1000, 1000.0, 946
SERVER_MBPS = 5.0


def ecn(work: Path) -> Figure:
    """RTTs of pings beside flows with ECN over the exercise's link of 0.5 Mb/s, without and with marks."""
    flows = work / "flows.csv"
    flows.write_text("src,dst,bytes,start\nh1,h2,200KB,0ms\nh11,h22,200KB,0ms\nh11,h2,100KB,2s\n")
    figure = Figure(figsize=(7, 3))
    axes = figure.add_subplot()
    for label, program in (("exercise: no marks", "plain"), ("solution: marks from 10 packets", "build")):
        result = tailrace.run(
            scheme=f"program:json={program}/ecn.json",
            topology="topology.json:rate=10Mbps",
            workload=f"ping:from=h1,to=h2,count=80,interval=100ms + {flows}",
            transport="dctcp:rto=1s",
            window="16KiB",
            target="virtual",
        )
        pings = result.pings
        times = [sent / NS_PER_S for sent in pings.column("sent_ns").to_pylist()]
        rtts = [nan if rtt is None else rtt / NS_PER_MS for rtt in pings.column("rtt_ns").to_pylist()]
        axes.plot(times, rtts, label=label)
    axes.set(xlabel="time (s)", ylabel="RTT of a ping (ms)", ylim=(0, None))
    axes.legend()
    return figure


def link_monitor(work: Path) -> Figure:
    """Utilisation of the link from s1 to s4: by the exercise's probes, and by the switch's own counts."""
    probes, flows = work / "probes.pcap", work / "flows.csv"
    probe = Ether(dst="ff:ff:ff:ff:ff:ff", type=PROBE_TYPE) / Raw(bytes([0, *PROBE_PORTS]))
    _capture(probes, [(number * PERIOD_S, probe) for number in range(40)])
    flows.write_text("src,dst,bytes,start\nh1,h4,900KB,500ms\nh2,h4,400KB,1500ms\n")
    result = tailrace.run(
        scheme="program:json=build/link_monitor.json",
        topology="pod-topo/topology.json:rate=10Mbps",
        workload=f"replay:host=h1,file={probes} + {flows}",
        transport="udp:rate=3Mbps",
        sample="100ms",
        target="virtual",
    )
    figure = Figure(figsize=(7, 3))
    axes = figure.add_subplot()
    measured = [(frame.time_ns / NS_PER_S, _probed(frame.data, 1, 4)) for frame in result.frames["h1"].kept]
    axes.step(*zip(*measured, strict=True), where="post", label="probes")
    axes.step(*zip(*_sampled(result, "s1", 4), strict=True), where="post", label="switch", linestyle="--")
    axes.set(xlabel="time (s)", ylabel="s1 to s4 (Mb/s)", ylim=(0, None))
    axes.legend()
    return figure


def _probed(frame: bytes, switch: int, port: int) -> float:
    """The rate in Mb/s that a probe has measured at its latest hop through a port of a switch."""
    hops = frame[14]
    for number in range(hops):
        swid, at, count, last, now = HOP.unpack_from(frame, 15 + number * HOP.size)
        microseconds = int.from_bytes(now, "big") - int.from_bytes(last, "big")
        # the second passage of a probe counts only the first one
        if (swid & 127, at) == (switch, port) and microseconds > PERIOD_S * 1e6 / 2:
            return float(8 * count / microseconds)
    return 0.0


def _sampled(result: Result, switch: str, port: int) -> list[tuple[float, float]]:
    """Times in s, and the rate in Mb/s at which a port sent until then."""
    queues = result.timelines.queues
    assert queues is not None, "there are samples"
    columns = [queues.column(name).to_pylist() for name in ("time_ns", "switch", "port", "tx_bytes")]
    rows = [row for row in zip(*columns, strict=True) if row[1:3] == (switch, port)]
    return [
        (before[0] / NS_PER_S, 8e3 * after[3] / (after[0] - before[0])) for before, after in pairwise(rows)
    ]


def load_balance(work: Path) -> Figure:
    """What two servers of 5 Mb/s receive of 8 Mb/s, by the number of TCP connections."""
    topology = work / "topology.json"
    document = json.loads(Path("topology.json").read_text("utf-8"))
    for link in document["links"]:
        if {end.partition("-")[0] for end in link[:2]} in ({"s1", "s2"}, {"s1", "s3"}):
            link[2:] = ["0", SERVER_MBPS]
    topology.write_text(json.dumps(document))
    shares = {number: [_balance(work, topology, number, seed) for seed in SEEDS] for number in CONNECTIONS}
    figure = Figure(figsize=(7, 3))
    axes = figure.add_subplot()
    names = list(map(str, CONNECTIONS))
    for index, label in enumerate(("delivered", "share of the busier server")):
        values = [[100 * share[index] for share in shares[number]] for number in CONNECTIONS]
        axes.plot(names, [sum(each) / len(each) for each in values], marker="o", label=label)
        axes.fill_between(names, list(map(min, values)), list(map(max, values)), alpha=0.2)
    axes.set(xlabel="TCP connections", ylabel="%", ylim=(0, 105))
    axes.legend(loc="lower right")
    return figure


def _balance(work: Path, topology: Path, connections: int, seed: int) -> tuple[float, float]:
    """The delivered share of the frames, and the share of them that the busier server received."""
    rng = random.Random(f"{connections} {seed}")
    ports = rng.sample(range(49152, 65536), connections)
    frames, time_s = [], 0.0
    for number in range(FRAMES):
        segment = TCP(sport=rng.choice(ports), dport=1234, seq=number) / Raw(bytes(PAYLOAD_BYTES))
        frames.append((time_s, Ether(dst="ff:ff:ff:ff:ff:ff") / IP(src="10.0.1.1", dst="10.0.0.1") / segment))
        time_s += rng.expovariate(FRAMES_PER_S)
    capture = work / "h1.pcap"
    _capture(capture, frames)
    result = tailrace.run(
        scheme="program:json=build/load_balance.json,entries=.",
        topology=f"{topology}:rate=10Mbps",
        workload=f"replay:host=h1,file={capture}",
        target="virtual",
    )
    arrived = Counter({name: each.arrived for name, each in result.frames.items()})
    return arrived.total() / FRAMES, max(arrived.values()) / arrived.total()


def _capture(path: Path, frames: list[tuple[float, Ether]]) -> None:
    """Writes frames with their times in s."""
    packets = []
    for time_s, frame in frames:
        packet = frame.copy()
        packet.time = time_s
        packets.append(packet)
    wrpcap(str(path), packets)


FIGURES: Mapping[str, Callable[[Path], Figure]] = {
    "ecn": ecn,
    "link_monitor": link_monitor,
    "load_balance": load_balance,
}


def main() -> None:
    """Draws the picture of one exercise."""
    parser = argparse.ArgumentParser(description="Draws a picture of docs/programs.")
    parser.add_argument("exercise", choices=FIGURES)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("picture", type=Path, metavar="PICTURE.svg")
    arguments = parser.parse_args()
    picture = arguments.picture.absolute()
    os.chdir(arguments.folder)
    with tempfile.TemporaryDirectory() as work:
        figure = FIGURES[arguments.exercise](Path(work))
    figure.tight_layout()
    figure.savefig(picture)


if __name__ == "__main__":
    main()
