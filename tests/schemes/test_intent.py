# SPDX-License-Identifier: Apache-2.0
"""What the controller wants of each switch: every host reaches every other, without loops; values fit the
program.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.p4rt import programs
from tailrace.p4rt.encoding import encode
from tailrace.p4rt.entities import P4CloneSessionEntry, P4TableEntry
from tailrace.p4rt.intent import SwitchIntent
from tailrace.p4rt.target import target
from tailrace.schemes.base import resolve
from tailrace.schemes.errors import IntentError
from tailrace.schemes.registry import parse_scheme
from tailrace.spec import SpecError
from tailrace.topology import Host, Link, Switch, Topology, max_switches_on_path, next_hops, parse_topology
from tailrace.topology.timing import FULL_FRAME_BYTES, base_rtt_ns
from tests.schemes.planned import SMALL, intent, rows
from tests.schemes.walker import Tables, walk

TOPOLOGIES = (
    "leaf-spine:leaves=1,hosts=3",
    "leaf-spine:leaves=3,spines=4,hosts=2",
    "fat-tree:k=4",
    "fat-tree:k=4,taper=2",
    "dragonfly:p=1,a=3,h=1",
    "dragonfly:p=1,a=4,h=2,groups=3",
    "slim-fly:q=4,p=1",
)
SCHEMES = (
    *("ecmp", "spray", "letflow", "presto", "drill", "hermes"),
    *("flowcut", "flowcut:variant=ingress", "flowcut:variant=nic"),
    *("rlb:variant=presto", "rlb:variant=letflow", "rlb:variant=drill", "rlb:variant=hermes"),
)
IN_A_DRAGONFLY = (
    *(
        "minimal",
        "valiant:per=flow",
        "ugal-l:per=flowlet",
        "letflow",
        "letflow:path=shortest",
        "flowcut",
        "mp-rdma",
    ),
    *("flowcut:variant=ingress,path=valiant", "flowcut:path=shortest", "flowcut:variant=nic"),
)
STEERED = (
    *("spritz", "spritz:mode=coarse,trim=off", "ops", "flicr", "ecmp:over=all"),
    *("minimal:draw=hop", "valiant:draw=hop", "ugal-l:draw=hop"),
)
VIRTUAL = target("virtual")
DRAGONFLY = ("minimal", "valiant", "ugal-l", "letflow:path=ugal-l", "flowcut:path=valiant")
BOUNDED = ("spritz", "ops", "ecmp:over=all", "valiant:draw=hop")
LARGE = "dragonfly:p=1,a=258,h=1,groups=1"


def tables_of(topology: Topology, down: frozenset[tuple[str, int]] = frozenset()) -> dict[str, Tables]:
    intents = intent(topology, parse_scheme("flowcut:variant=ingress,path=shortest"), VIRTUAL, down)
    return {name: Tables(intended) for name, intended in intents.items()}


@pytest.mark.parametrize("words", TOPOLOGIES)
def test_every_pair(words: str) -> None:
    """From every switch every host is reached on whatever path a hash may choose, none longer than the
    longest shortest path.
    """
    topology = parse_topology(words)
    tables = tables_of(topology)
    for switch in topology.switches:
        for host in topology.hosts:
            length = walk(topology, tables, switch.name, host.ip)
            assert length is not None
            if switch.name in topology.leaves:
                assert length <= max_switches_on_path(topology)


@settings(max_examples=60)
@given(st.data())
def test_every_pair_with_faults(data: st.DataObject) -> None:
    """With any links down, a host is reached wherever there is a path, and packets for others are dropped at
    once.
    """
    topology = parse_topology(data.draw(st.sampled_from(TOPOLOGIES[1:5])))
    dead = data.draw(st.sets(st.sampled_from(topology.links), max_size=6))
    down = frozenset((link.b, link.b_port) for link in dead)
    tables = tables_of(topology, down)
    hops = next_hops(topology, down)
    ends = down | {(link.a, link.a_port) for link in dead}
    for switch in topology.switches:
        for host in topology.hosts:
            length = walk(topology, tables, switch.name, host.ip)
            reached = switch.name == host.switch or bool(hops[switch.name][host.switch])
            assert reached == (length is not None)
            ports = tables[switch.name].next_ports(host.ip)
            assert not any((switch.name, port) in ends for port in ports)


def test_tutorials_file(tmp_path: Path) -> None:
    """A tutorials' topology, whose leaves have several prefixes, is routed too."""
    hosts = {f"h{i}": {"ip": f"10.0.{i}.{i}/24"} for i in (1, 2, 3)}
    links = [["h1", "s1-p1"], ["h2", "s1-p2"], ["s1-p3", "s2-p2"], ["h3", "s2-p1"]]
    file = tmp_path / "topology.json"
    file.write_text(json.dumps({"hosts": hosts, "switches": {"s1": {}, "s2": {}}, "links": links}))
    topology = parse_topology(str(file))
    tables = tables_of(topology)
    assert {walk(topology, tables, s, h.ip) for s in ("s1", "s2") for h in topology.hosts} == {1, 2}


@pytest.mark.parametrize(
    ("key", "value", "compiled"),
    [("cpu_port", 510, 510), ("cpu_port", 255, 510), ("priority_queues", "3", 8)],
)
def test_numbers_of_a_tutorials_file(tmp_path: Path, key: str, value: object, compiled: int) -> None:
    """The programs are compiled for one CPU port and so many queues: a file with others is refused by key."""
    file = tmp_path / "topology.json"
    hosts = {"h1": {"ip": "10.0.1.1/24"}}
    file.write_text(
        json.dumps({"hosts": hosts, "switches": {"s1": {key: value}}, "links": [["h1", "s1-p1"]]})
    )
    config, topology = parse_scheme("ecmp"), parse_topology(str(file))
    if value == compiled:
        assert resolve(config, topology).program == "ecmp"
        return
    problem = (
        f"{file}: switches.s1.{key}: {value}, but the program ecmp is compiled for {compiled}; leave it out"
    )
    with pytest.raises(SpecError) as caught:
        resolve(config, topology)
    assert problem == str(caught.value)


@pytest.mark.parametrize(
    ("topology", "schemes"),
    [
        ("fat-tree:k=4", SCHEMES),
        ("dragonfly:p=1,a=3,h=2,groups=4", IN_A_DRAGONFLY),
        *((words, STEERED) for words in SMALL),
    ],
)
def test_encodes(topology: str, schemes: tuple[str, ...]) -> None:
    """All entities of all schemes fit their program's P4Info, and no two name the same entry."""
    for words in schemes:
        for intended in intent(parse_topology(topology), parse_scheme(words), VIRTUAL).values():
            messages = encode(programs.load(intended.program), intended.entities)
            keys = {message.SerializeToString(deterministic=True) for message in messages}
            assert len(keys) == len(intended.entities), words


def test_hosts_and_roles() -> None:
    """A leaf knows its own hosts by address, port and MAC; only ports to switches are trusted."""
    topology = parse_topology("leaf-spine:leaves=2,spines=2,hosts=2")
    leaf = tables_of(topology)["leaf2"]
    assert {"10.0.2.2/32": (1, "02:00:0a:00:02:02"), "10.0.2.3/32": (2, "02:00:0a:00:02:03")} == leaf.hosts
    assert {3, 4} == leaf.roles
    assert {1: (3, 4)} == leaf.candidates
    assert {1, 2} == tables_of(topology)["spine1"].roles


def defaults(intended: SwitchIntent) -> dict[str, dict[str, int]]:
    """Configuration: the arguments of the default actions, by table."""
    return {
        entity.table_id: getattr(entity.action, "args")  # noqa: B009 - actions of action profiles have none
        for entity in intended.entities
        if isinstance(entity, P4TableEntry) and entity.is_default_action
    }


TEN_GBPS = parse_topology("leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps")


RTT_NS = base_rtt_ns(TEN_GBPS, FULL_FRAME_BYTES)


def test_flowcut_configuration() -> None:
    """Thresholds are fixed point numbers, modes come from P4Info, times are ticks of the target."""
    words = "flowcut:rtt=3.5,growth=0.5,alpha=0.25,left=9,resume=3KB,credit=2KB,age=2ms,buckets=8,first=least-loaded"
    program = programs.load("flowcut")
    for tick_ns, age_ticks, per_byte in ((1, 2_000_000, 52_429), (1000, 2_000, 52), (100, 20_000, 524)):
        configured = defaults(intent(TEN_GBPS, parse_scheme(words), target("native", tick_ns))["leaf1"])
        assert configured["flowcut_config"] == {
            "mode": program.enum("FlowcutMode_t", "FULL"),
            "first_path": program.enum("FirstPath_t", "LEAST_LOADED"),
            "bucket_mask": 7,
            "age_ticks": age_ticks,
        }
        assert configured["drain_config"] == {
            "rtt_threshold": 896,
            "growth_threshold": 128,
            "alpha": 64,
            "ticks_per_byte": per_byte,
            "min_left": 9,
            "resume_bytes": 3000,
        }
        assert configured["pause_config"] == {
            "by_class": 0,
            "quanta": 2 * RTT_NS * 10 // 512 + 1,
            "obey_bytes": 2000 + 2 * (RTT_NS * 10 // 8),
            "credit_bytes": 2000,
        }


def test_flowcut_limits() -> None:
    """A growth that nothing reaches is the largest that fits; buckets are all that there are; alpha may be 1."""
    configured = defaults(intent(TEN_GBPS, parse_scheme("flowcut:growth=off,alpha=1"), VIRTUAL)["leaf1"])
    assert (0x7FFF, 256) == (
        configured["drain_config"]["growth_threshold"],
        configured["drain_config"]["alpha"],
    )
    cells = programs.load("flowcut").register_size("untracked_bytes")
    assert cells - 1 == configured["flowcut_config"]["bucket_mask"]


def test_clone_session() -> None:
    """ACKs are cloned through the session and port that the P4 source names."""
    intended = intent(TEN_GBPS, parse_scheme("flowcut"), VIRTUAL)["leaf1"]
    program = programs.load("flowcut")
    sessions = [entity for entity in intended.entities if isinstance(entity, P4CloneSessionEntry)]
    assert [(program.constant("ack_session"), [program.constant("mirror_port")])] == [
        (session.session_id, list(session.replicas)) for session in sessions
    ]


def test_common_configuration() -> None:
    """Switch id, seed, queue limit and RED reach every program; a flowlet gap is rounded up to ticks."""
    words = "letflow:gap=1001ns,seed=77,queue=90KB,kmin=10KB,kmax=40KB,pmax=0.3"
    configured = defaults(intent(TEN_GBPS, parse_scheme(words), target("bmv2"))["spine2"])
    assert configured == {
        "switch_config": {"switch_id": 4, "hash_seed": 77},
        "queue_config": {"limit_bytes": 90_000},
        "red_config": {"kmin_bytes": 10_000, "kmax_bytes": 40_000, "pmax_permille": 300},
        "flowlet_config": {"gap_ticks": 2},
    }


@pytest.mark.parametrize("words", ["letflow:", "rlb:variant=letflow,"])
def test_tiers_that_find_flowlets(words: str) -> None:
    """tiers=tor: switches with hosts alone (HF2T §4.2); else all of them."""
    topology = parse_topology("fat-tree:k=4")
    for tiers, finders in (("all", topology.switches), ("tor", None)):
        held = intent(topology, parse_scheme(f"{words}gap=1us,tiers={tiers}"), VIRTUAL)
        names = {switch.name for switch in finders} if finders else set(topology.leaves)
        for name, intended in held.items():
            given = defaults(intended)["flowlet_config"]
            assert given == ({"gap_ticks": 1000} if name in names else {})


def test_presto_configuration() -> None:
    """The size of a cell in bytes, whatever the clock."""
    for words, cell_bytes in (("presto", 65_536), ("presto:cell=10KB", 10_000)):
        configured = defaults(intent(TEN_GBPS, parse_scheme(words), target("bmv2"))["leaf1"])
        assert configured["flowcell_config"] == {"cell_bytes": cell_bytes}


def test_drill_knows_each_slot_four_times() -> None:
    """One for each candidate and one for the choice: the same everywhere, one slot a live port."""
    topology = parse_topology("leaf-spine:leaves=2,spines=3,hosts=1")
    for down, ports in ((frozenset[tuple[str, int]](), (2, 3, 4)), (frozenset({("leaf1", 3)}), (2, 4))):
        leaf = intent(topology, parse_scheme("drill"), VIRTUAL, down)["leaf1"]
        expected = [({"group": 1, "slot": slot}, {"port": port}) for slot, port in enumerate(ports)]
        for table in ("remembered_members", "first_members", "other_members", "group_members"):
            assert expected == [(match, args) for match, _, args in rows(leaf, table)]


def test_a_flowcell_of_full_packets() -> None:
    """Ten packets of 1,500 bytes with 58 bytes of headers each, and the RETH of a first packet."""
    for words in ("presto:packets=10", "rlb:variant=presto,packets=10"):
        configured = defaults(intent(TEN_GBPS, parse_scheme(words), target("bmv2"))["leaf1"])
        assert configured["flowcell_config"] == {"cell_bytes": 10 * 1558 + 16}


@pytest.mark.parametrize("words", ["drill:memory=destination", "rlb:variant=drill,memory=destination"])
def test_drill_remembers_by_destination(words: str) -> None:
    """Each host of another leaf has a group of its own with the slots of its leaf's group, and a route to it."""
    topology = parse_topology("leaf-spine:leaves=3,spines=3,hosts=2,restricted=h5/2")
    leaf = intent(topology, parse_scheme(words), VIRTUAL)["leaf1"]
    routes = {match["dst"]: args for match, action, args in rows(leaf, "ipv4_routes") if action == "to_group"}
    slots = Counter(match["group"] for match, _, _ in rows(leaf, "group_members"))
    groups = {host.name: routes[f"{host.ip}/32"]["group"] for host in topology.hosts[2:]}
    assert len(set(groups.values())) == 4
    assert {name: slots[group] for name, group in groups.items()} == {"h3": 3, "h4": 3, "h5": 2, "h6": 3}
    for table in ("remembered_members", "first_members", "other_members"):
        assert len(list(rows(leaf, table))) == slots.total()


def chain(length: int) -> Topology:
    """Switches in a row, with a host at each end."""
    switches = tuple(Switch(f"s{i}", i, "leaf") for i in range(1, length + 1))
    links = tuple(Link(f"s{i}", 2, f"s{i + 1}", 1, 10**9, 0) for i in range(1, length))
    ends = ((1, "s1", 5), (2, f"s{length}", 5))
    hosts = tuple(Host(f"h{i}", i, f"10.0.{i}.2", f"02:00:00:00:00:0{i}", s, p, 10**9, 0) for i, s, p in ends)
    return Topology("chain", f"chain of {length}", switches, hosts, links)


def test_longest_path_of_the_full_variant() -> None:
    """The full variant refuses paths with more switches before the last than a packet has room for stamps."""
    room = programs.load("flowcut").constant("stamps")
    full = parse_scheme("flowcut")
    assert len(intent(chain(room + 1), full, VIRTUAL)) == room + 1
    with pytest.raises(IntentError) as caught:
        intent(chain(room + 2), full, VIRTUAL)
    expected = f"variant full stamps packets at {room + 1} switches of a path in chain of {room + 2}"
    assert f"scheme flowcut: {expected}, a packet has fields for {room}" == str(caught.value)
    assert intent(chain(room + 2), parse_scheme("flowcut:variant=ingress"), VIRTUAL)


REFUSED = [
    ("leaf-spine:leaves=2,spines=33,hosts=1", "flowcut", "leaf1 has 33 equal next hops, at most 32 can"),
    ("leaf-spine", "flowcut:buckets=65536", "buckets must be at most 1024, found '65536'"),
    ("leaf-spine", "flowcut:left=1000", "min_left is 1000 in units of the switch, expected at most 255"),
    (
        "leaf-spine",
        "flowcut:rtt=300",
        "rtt_threshold is 76800 in units of the switch, expected at most 65535",
    ),
    ("leaf-spine", "flowcut:age=400000s", "age is"),
    ("leaf-spine", "letflow:gap=400000s", "gap is"),
    ("leaf-spine", "presto:cell=8GiB", "cell is"),
    ("leaf-spine", "ecmp:queue=8GiB", "queue limit is"),
    ("dragonfly:p=2,a=4,h=2", "letflow:tiers=tor", "tiers=tor needs path=shortest, found 'ugal-l'"),
    *(("fat-tree:k=4", words, "paths need a Dragonfly, which fat-tree:k=4 is not") for words in DRAGONFLY),
    ("slim-fly:q=3", "minimal:draw=group", "minimal paths need a Dragonfly"),
    ("slim-fly:q=3", "valiant:per=flow", "per=flow needs draw=group"),
    ("dragonfly:p=1,a=2,h=1", "ugal-l:trim=on", "trim needs draw=hop"),
    *((LARGE, words, f"topology {LARGE}: r1_1 has 257 ports to choose from") for words in BOUNDED),
]


def test_refusals() -> None:
    """What does not fit the program, or the topology, is refused in one line."""
    for topology, scheme, message in REFUSED:
        with pytest.raises(IntentError) as caught:
            intent(parse_topology(topology), parse_scheme(scheme), VIRTUAL)
        assert message in str(caught.value), scheme
        assert "\n" not in str(caught.value)


def test_more_entries_than_room() -> None:
    """More groups than the table has room for are refused with the table's name."""
    leaves, spines = 62, 79
    switches = [Switch(f"leaf{i}", i, "leaf") for i in range(1, leaves)]
    hosts = tuple(
        Host(f"h{i}", i, f"10.0.{i}.2", f"02:00:00:00:00:{i:02x}", f"leaf{i}", 1, 1, 0)
        for i in range(1, leaves)
    )
    switches += [Switch(f"spine{i}", 100 + i, "spine") for i in range(spines)]
    links, used = [], dict.fromkeys([switch.name for switch in switches], 1)
    for spine in range(spines):
        # each leaf lacks other spines, so each has another set of next hops
        for leaf in [1] + [leaf for leaf in range(2, leaves) if (spine + leaf) % 61 < 58]:
            ends = (f"leaf{leaf}", f"spine{spine}")
            for end in ends:
                used[end] += 1
            links.append(Link(ends[0], used[ends[0]], ends[1], used[ends[1]], 1, 0))
    wide = Topology("wide", "wide", tuple(switches), hosts, tuple(links))
    with pytest.raises(
        IntentError, match=r"leaf1 needs \d+ entries in group_members, which has room for 16384"
    ):
        intent(wide, parse_scheme("letflow"), VIRTUAL)
