# SPDX-License-Identifier: Apache-2.0
"""Entries and packets for Google's SAI program (sonic-net/sonic-pins, sai_p4), compiled with PLATFORM_BMV2.

python -m checks.bench.middleblock build/middleblock.json OUT

The workload is that of 4ward, another P4Runtime switch (4ward-p4/4ward, docs/PERFORMANCE.md, "L3
forwarding"): 10,000 IPv4 /32 routes over 100 next hops, and 500 ternary ACL entries, half in the ingress and
half in the pre-ingress table. All packets match only the pre-ingress entry of lowest priority, which assigns
a VRF to all IPv4 packets. (The default VRF has no routes: the program's @entry_restriction and @refers_to
annotations allow no entry for it.) The command writes OUT/entries.txtpb and OUT/packets.pcap for
`python -m checks.bench --program`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from pathlib import Path

from google.protobuf import text_format
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap

from tailrace.p4rt import programs
from tailrace.p4rt.encoding import encode
from tailrace.p4rt.entities import P4TableAction, P4TableEntry, P4TableMatch
from tailrace.p4rt.errors import P4ProgramError
from tailrace.p4rt.messages import p4r

ROUTES, NEXT_HOPS, ACL_ENTRIES = 10_000, 100, 500
PAYLOAD_BYTES = 18
_INTERFACE = b"rif-0"
_NEIGHBOR = 1
_ROUTES = int(IPv4Address("10.0.0.0"))
_ACL = int(IPv4Address("172.16.0.0"))


def _id(text: bytes) -> int:
    """A string id of the SAI program as the number of 256 bits that its BMv2 build uses."""
    return int.from_bytes(text, "big")


_VRF = _id(b"vrf-1")


def _next_hop(number: int) -> int:
    return _id(b"nhop-%d" % (number % NEXT_HOPS))


def _entry(
    table: str, match: Mapping[str, object], action: str, priority: int = 0, **args: int
) -> P4TableEntry:
    call = P4TableAction(action, **args)
    return P4TableEntry(table, match=P4TableMatch(match), action=call, priority=priority)


def entries() -> Iterator[P4TableEntry]:
    """All entries, each after those that it refers to."""
    yield _entry("vrf_table", {"vrf_id": _VRF}, "no_action")
    yield _entry("l3_admit_table", {"dst_mac": "00:01:02:03:04:05"}, "admit_to_l3", 1)
    rif = _id(_INTERFACE)
    yield _entry(
        "router_interface_table",
        {"router_interface_id": rif},
        "unicast_set_port_and_src_mac",
        port=1,
        src_mac=0x001122334455,
    )
    neighbor = {"router_interface_id": rif, "neighbor_id": _NEIGHBOR}
    yield _entry("neighbor_table", neighbor, "set_dst_mac", dst_mac=0x00AABBCCDDEE)
    for i in range(NEXT_HOPS):
        match: dict[str, object] = {"nexthop_id": _next_hop(i)}
        yield _entry("nexthop_table", match, "set_ip_nexthop", router_interface_id=rif, neighbor_id=_NEIGHBOR)
    for i in range(ROUTES):
        match = {"vrf_id": _VRF, "ipv4_dst": f"{IPv4Address(_ROUTES + i)}/32"}
        yield _entry("ipv4_table", match, "set_nexthop_id", nexthop_id=_next_hop(i))
    yield _entry("acl_pre_ingress_table", {"is_ipv4": 1}, "set_vrf", 1, vrf_id=_VRF)
    for i in range(ACL_ENTRIES // 2):
        match = {"is_ipv4": 1, "dst_ip": str(IPv4Address(_ACL + (2 << 16) + i))}
        yield _entry("acl_pre_ingress_table", match, "set_vrf", i + 2, vrf_id=_VRF)
    for i in range(ACL_ENTRIES // 2):
        source, destination = IPv4Address(_ACL + i), IPv4Address(_ACL + (1 << 16) + i)
        match = {"is_ipv4": 1, "src_ip": str(source), "dst_ip": str(destination)}
        yield _entry("acl_ingress_table", match, "acl_forward", i + 1)


def frames() -> list[bytes]:
    """One frame to each route."""
    results = []
    for i in range(ROUTES):
        ip = IP(src="192.168.1.1", dst=str(IPv4Address(_ROUTES + i)), ttl=64)
        ethernet = Ether(src="00:0a:0b:0c:0d:0e", dst="00:01:02:03:04:05")
        udp = UDP(sport=1024 + i % 8192, dport=4791)
        results.append(bytes(ethernet / ip / udp / Raw(bytes(PAYLOAD_BYTES))))
    return results


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns 0 on success, 1 on failure."""
    parser = argparse.ArgumentParser(
        prog="python -m checks.bench.middleblock", description=__doc__.splitlines()[0]
    )
    parser.add_argument("json", type=Path, help="the compiled program; NAME.p4info.txtpb lies beside it")
    parser.add_argument("out", type=Path, help="folder for entries.txtpb and packets.pcap")
    options = parser.parse_args(argv)
    try:
        program = programs.load(options.json.name.removesuffix(".json"), options.json.parent)
        updates = [
            p4r.Update(type=p4r.Update.INSERT, entity=encode(program, [entry])[0]) for entry in entries()
        ]
        options.out.mkdir(parents=True, exist_ok=True)
        text = text_format.MessageToString(p4r.WriteRequest(updates=updates))
        (options.out / "entries.txtpb").write_text(text, "utf-8")
        wrpcap(str(options.out / "packets.pcap"), [Ether(frame) for frame in frames()])
    except (OSError, P4ProgramError, ValueError) as error:
        print(f"bench.middleblock: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
