# SPDX-License-Identifier: Apache-2.0
"""Walks of EVs through entries that are as they should not be: what is wrong is said, and nothing runs for ever."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from tailrace.schemes.spritz.walk import FIRST, SECOND, EvWalk, EvWalker, SteeredTables
from tailrace.topology import parse_topology

RING = parse_topology("slim-fly:p=1,q=3")
SRC, DST = RING.host("h1"), RING.host("h2")
EVERYWHERE = IPv4Network("0.0.0.0/0")


def first_port(switch: str) -> int:
    """The first port that leads to a switch."""
    return next(port for port, peer in RING.ports_of(switch).items() if peer.kind == "switch")


def back_and_forth(switch: str) -> SteeredTables:
    """Sends everything by the first port."""
    tables = SteeredTables()
    tables.add_destination(EVERYWHERE, 0, first_port(switch))
    return tables


def test_no_entries() -> None:
    """The packet is dropped where it begins."""
    walk = EvWalker(RING, lambda name: SteeredTables()).walk(SRC, DST, 1)
    assert EvWalk((SRC.switch,), (), f"{SRC.switch} drops it") == walk


def test_a_loop() -> None:
    """The walk ends."""
    walk = EvWalker(RING, back_and_forth).walk(SRC, DST, 1)
    assert ("it loops", len(RING.switches) + 3) == (walk.problem, len(walk.switches))


def test_wrong_hosts_and_ports() -> None:
    """A host that is another one's, and a port that has no link."""

    def astray(port: int) -> SteeredTables:
        tables = SteeredTables()
        tables.add_host(IPv4Address(DST.ip), port)
        return tables

    wrong = EvWalker(RING, lambda name: astray(SRC.port)).walk(SRC, DST, 1)
    assert f"{SRC.switch} delivers it to {SRC.name}" == wrong.problem
    nowhere = EvWalker(RING, lambda name: astray(99)).walk(SRC, DST, 1)
    assert f"port 99 of {SRC.switch} leads nowhere" == nowhere.problem


def test_longest_prefix_and_roles() -> None:
    """A longer prefix goes first; slots are by EV1 in the first role, by EV2 in the second; a role without a list,
    and an EV2 that leads back, leave it to the default table.
    """
    tables = SteeredTables()
    tables.add_destination(EVERYWHERE, 0, 9)
    tables.add_destination(IPv4Network("10.0.2.0/24"), 1, 8)
    src, far, near = (int(IPv4Address(ip)) for ip in ("10.0.1.2", "10.0.3.2", "10.0.2.2"))
    assert (9, 8) == (tables.port(1, src, far, 0x0102), tables.port(1, src, near, 0x0102))
    tables.add_list(FIRST, 0, 7, 2)
    tables.add_list(SECOND, 0, 6, 3)
    for slot, port in enumerate((20, 21)):
        tables.add_slot(7, slot, port)
    for slot, port in enumerate((30, 31, 5)):
        tables.add_slot(6, slot, port)
    assert [20, 21, 20] == [tables.port(1, src, far, ev1 << 8 | 1) for ev1 in (0, 1, 2)]
    assert 8 == tables.port(1, src, near, 0x0102), "no list within the group"
    tables.add_port(5)
    assert 9 == tables.port(5, src, far, 0), "no role"
    tables.add_second(5, IPv4Network("10.0.1.0/24"))
    assert [30, 31, 9, 30] == [tables.port(5, src, far, ev2) for ev2 in (0, 1, 2, 3)]
    tables.add_list(FIRST, 0, 7, 3)
    assert tables.port(1, src, far, 0x0200) is None, "a slot without an entry"
