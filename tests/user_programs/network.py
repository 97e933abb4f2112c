# SPDX-License-Identifier: Apache-2.0
"""A network as users of the p4lang tutorials have it: topology.json, runtime files, a program that knows
nothing of Tailrace (tests/programs/basic_l3.p4), and an independent model of what the program does to a frame.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

from tailrace.codec.captures import packets_of

BUILD = Path(__file__).parents[1] / "programs" / "build"
RATE = "rate=10Mbps,delay=10us"
TOPOLOGY = f"topology.json:{RATE}"
PORTS = {"h1": ("s1", 1), "h2": ("s1", 2), "h3": ("s2", 1), "h4": ("s2", 2)}
LINK_PORT = 3
HOSTS = {name: f"10.0.{switch[1]}.{name[1]}" for name, (switch, _) in PORTS.items()}
MACS = {name: f"08:00:00:00:0{switch[1]}:0{name[1]}" for name, (switch, _) in PORTS.items()}
OTHER = {"s1": "s2", "s2": "s1"}


def topology(**switches: Mapping[str, Any]) -> dict[str, Any]:
    """Two switches with two hosts each; `switches`: further keys of a switch."""
    hosts = {
        name: {
            "ip": f"{HOSTS[name]}/24",
            "mac": MACS[name],
            "commands": [
                f"route add default gw 10.0.{switch[1]}.254 dev eth0",
                f"arp -i eth0 -s 10.0.{switch[1]}.254 08:00:00:00:0{switch[1]}:00",
            ],
        }
        for name, (switch, _) in PORTS.items()
    }
    links = [[name, f"{switch}-p{port}"] for name, (switch, port) in PORTS.items()]
    return {
        "hosts": hosts,
        "switches": {name: dict(switches.get(name, {})) for name in ("s1", "s2")},
        "links": [*links, [f"s1-p{LINK_PORT}", f"s2-p{LINK_PORT}", "0", 5.0]],
    }


def routes(switch: str) -> dict[str, int]:
    """The port to each host, by address."""
    return {HOSTS[name]: port if at == switch else LINK_PORT for name, (at, port) in PORTS.items()}


def runtime(switch: str) -> dict[str, Any]:
    """The tutorials' sX-runtime.json."""
    macs = dict(zip(HOSTS.values(), MACS.values(), strict=True))
    entries = [
        {
            "table": "L3Ingress.route",
            "match": {"dst": [address, 32]},
            "action_name": "L3Ingress.forward",
            "action_params": {"next_hop": macs[address], "port": port},
        }
        for address, port in routes(switch).items()
    ]
    return {"target": "bmv2", "p4info": "-", "bmv2_json": "-", "table_entries": entries}


def commands(switch: str) -> str:
    """The same for simple_switch_CLI."""
    macs = dict(zip(HOSTS.values(), MACS.values(), strict=True))
    return "".join(
        f"table_add L3Ingress.route L3Ingress.forward {address}/32 => {macs[address]} {port}\n"
        for address, port in routes(switch).items()
    )


def make_network(folder: Path, name: str = "basic_l3") -> Path:
    """Writes the files of a network into a folder: topology.json, its runtime files, and NAME.json."""
    files = {switch: {"runtime_json": f"{switch}-runtime.json"} for switch in OTHER}
    (folder / "topology.json").write_text(json.dumps(topology(**files)))
    for switch in OTHER:
        (folder / f"{switch}-runtime.json").write_text(json.dumps(runtime(switch)))
    copy_program(folder / f"{name}.json")
    return folder


def copy_program(to: Path, source: str = "basic_l3") -> None:
    """Copies a compiled program with its P4Info."""
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(BUILD / f"{source}.json", to)
    shutil.copy(BUILD / f"{source}.p4info.txtpb", to.with_suffix(".p4info.txtpb"))


def frames_of(host: str) -> list[Packet]:
    """Frames that a host may send: to every host and to nobody, of several protocols, with every kind of TTL."""
    base = Ether(src=MACS[host], dst="08:00:00:00:01:00")
    frames: list[Packet] = [base / ARP(), base / Raw(b"neither" * 20)]
    for number, target in enumerate((*HOSTS.values(), "10.9.9.9")):
        for ttl in (64, 3, 2, 1):
            packet = IP(src=HOSTS[host], dst=target, ttl=ttl, tos=number)
            frames += [base / packet / TCP(sport=number, dport=80) / Raw(bytes(number * 7 + ttl))]
            frames += [base / packet / UDP(sport=9, dport=number) / Raw(b"x" * 30)]
    broken = bytearray(bytes(base / IP(src=HOSTS[host], dst=HOSTS["h3"]) / UDP()))
    broken[24] ^= 1  # the header checksum
    return [*frames, Ether(bytes(broken))]


def expected(sender: str) -> dict[str, list[bytes]]:
    """What arrives at each host of the frames that one host sends, by the program's description."""
    arrived: dict[str, list[bytes]] = {}
    for each in frames_of(sender):
        frame = Ether(bytes(each))
        switch, name = PORTS[sender][0], ""
        while not name:
            if (
                IP not in frame
                or frame[IP].ttl <= 1
                or _is_broken(frame)
                or frame[IP].dst not in routes(switch)
            ):
                break
            port = routes(switch)[frame[IP].dst]
            frame[IP].ttl -= 1
            frame.dst = MACS[next(each for each, address in HOSTS.items() if address == frame[IP].dst)]
            del frame[IP].chksum
            frame = Ether(bytes(frame))
            name = next((each for each, place in PORTS.items() if place == (switch, port)), "")
            switch = OTHER[switch]
        if name:
            arrived.setdefault(name, []).append(bytes(frame))
    return {name: sorted(frames) for name, frames in arrived.items()}


def _is_broken(frame: Packet) -> bool:
    given = frame[IP].chksum
    copy = frame.copy()
    del copy[IP].chksum
    return bool(Ether(bytes(copy))[IP].chksum != given)


def write_capture(path: Path, frames: Iterable[Packet], interval_s: float = 0.002) -> None:
    """Writes frames with this time between them."""
    packets = []
    for number, frame in enumerate(frames):
        frame.time = 1_000_000 + number * interval_s
        packets.append(frame)
    wrpcap(str(path), packets)


def arrived(folder: Path) -> dict[str, list[bytes]]:
    """The frames in the captures of a run's folder, sorted, by host."""
    return {
        path.stem.removeprefix("arrived-"): sorted(packets_of(path.read_bytes()))
        for path in sorted(folder.glob("arrived-*.pcap"))
    }
