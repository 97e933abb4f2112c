# SPDX-License-Identifier: Apache-2.0
"""Two small files of each format, with the content that a reader by hand finds in them."""

from __future__ import annotations

from typing import Any, NamedTuple

from tailrace.formats.flow_table import FlowData as Flow
from tailrace.formats.flow_table import FlowTable


class Network(NamedTuple):
    """A network by hand.

    hosts: name, number in workloads, switch, rate in bit/s, delay in ns
    switches: name, role, group
    links: ends, rate, delay
    """

    hosts: list[tuple[str, int, str, int, int]]
    switches: list[tuple[str, str, int]]
    links: list[tuple[str, str, int, int]]
    latency_ns: int = 0


GBPS = 10**9

P4LANG = """
{"hosts": {"h1": {"ip": "10.0.1.1/24"}, "h2": {"ip": "10.0.2.2/24"}},
 "switches": {"s1": {"role": "edge", "group": 3}, "s2": {}},
 "links": [["h1", "s1-p1", "10us", 40], ["s2-p7", "h2", 2, "1Gbps"], ["s1-p2", "s2-p1"]]}
"""
P4LANG_2018 = """
{"hosts": ["h1", "h2"], "switches": {"s1": {}, "s2": {}},
 "links": [["h1", "s1", "0", 0.5], ["h2", "s2"], ["s1", "s2"]]}
"""
NODE_LINK = """
{"directed": false, "multigraph": false, "graph": {},
 "nodes": [{"id": "a", "role": "host"}, {"id": "b", "type": "host", "ip": "10.9.0.1/24"},
           {"id": "t0", "tier": 0}, {"id": "t1", "tier": 1, "pod": 2}],
 "links": [{"source": "a", "target": "t0", "rate": "25Gbps", "delay": 500},
           {"source": "t1", "target": "b", "bw": 10.5, "delay": "2us"},
           {"source": "t0", "target": "t1"}]}
"""
FNSS = """
{"directed": false, "multigraph": false,
 "graph": {"capacity_unit": "Gbps", "delay_unit": "us", "type": "fat_tree"},
 "nodes": [{"type": "host", "tier": "leaf", "id": 3}, {"type": "switch", "tier": "core", "id": 0},
           {"type": "switch", "tier": "aggregation", "pod": 0, "id": 1},
           {"type": "switch", "tier": "edge", "pod": 0, "id": 2}],
 "edges": [{"source": 0, "target": 1, "capacity": 40, "delay": 3},
           {"source": 1, "target": 2, "capacity": 10, "delay": 0.5},
           {"source": 2, "target": 3, "capacity": 1, "delay": 0}]}
"""
HPCC_TOPOLOGY = """4 2 4
3 0
1 0 100Gbps 1000ns 0.000000
2 3 25Gbps 0.001ms 0
0 3 400Gbps 2us 0
3 0 400Gbps 2us 0

First line: node #, switch #, link #
"""
CONWEAVE_TOPOLOGY = """3 1 2
2
0 2 100Gbps 1000ns 0.000000
1 2 100Gbps 1000ns 0.000000
"""
TOPO = """# two tiers
Nodes 4
Tiers 2
Podsize 4

Tier 0
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 50
Oversubscribed 1

Tier 1
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 700
Switch_Latency_ns 50
Bundle 2
"""
TOPO_THREE = """Nodes 4
Tiers 3
Podsize 2
Tier 0
Downlink_speed_Gbps 200
Radix_Down 1
Radix_Up 2
Downlink_Latency_ns 10
Tier 1
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 20
Tier 2
Downlink_speed_Gbps 100
Radix_Down 2
Downlink_Latency_ns 30
"""
CSV = "src,dst,bytes,start,sport,after\nh1,h5,64KiB,10us,5000,\nh5, h1,100,7,,1+2us\n"
CSV_SHORT = "dst,src,start,bytes\n10.0.2.2,h1,0,1MB\n"
HPCC_FLOWS = """2
2 1 3 100 200000000 2
3 1 3 100 5000 2.000000007
7 1 3 100 5000 3
"""
CONWEAVE_FLOWS = "1\n0 5 3 4096 1.5\n"
CM = """# an all-reduce over three hosts
Nodes 3
Connections 4
Triggers 2
0->1 id 7 start 1500000 size 1000 send_done_trigger 1
1->2 id 8 trigger 1 size 2000 send_done_trigger 2
2->0 id 9 start 0 size 10 recv_done_trigger 2
2->1 id 10 trigger 2 size 4000
trigger id 1 oneshot
trigger id 2 barrier count 2
"""
CM_MULTISHOT = """Nodes 3
Connections 5
Triggers 1
0->1 id 1 start 0 size 10 send_done_trigger 1
0->2 id 2 start 0 size 20 send_done_trigger 1
1->0 id 3 start 0 size 30 recv_done_trigger 1
0->1 id 4 trigger 1 size 40
0->2 id 5 trigger 1 size 50
trigger id 1 multishot
"""
CM_SHORT = "Nodes 2\nConnections 1\n0->1 start 0 size 12\n"
GOAL = """num_ranks 2
rank 0 {
l1: calc 5000
l2: send 8192b to 1 tag 4 // a comment
l2 requires l1
l3: recv 16b from 1
l4: calc 100
l4 requires l3
l5: send 1b to 1 tag 5 cpu 0 nic 0
l5 requires l4
l5 requires l2
}
rank 1 {

l1: recv 8192b from 0 tag 4
l2: send 16b to 0
l2 requires l1
recv 1b from 0 tag 5
}
"""
GOAL_STARTS = """num_ranks 3
rank 0 {
a: send 1b to 2
b: calc 70
b irequires a
c: send 2b to 1
c requires b
}
rank 1{
r: recv 2b from 0
}
rank 2 {
r: recv 1b from 0
s: calc 9
s requires r
}
"""
SIZES = "0 0\n1000 50\n\n3000,100\n"
HOMA = "700\n100 0.25\n500 0.5\n1100 1\n"
TOML = """name = "x"
unit = "bytes"
measured = "by us"
source = "here"
points = [[10, 0.5], [20, 1]]
"""
TOML_ONE = TOML.replace("[[10, 0.5], [20, 1]]", "[[7, 1.0]]")

_US = 1000
_DEFAULT = (200 * GBPS, 1 * _US)
"""Rate and delay of a link for which the file has none."""

NETWORKS: dict[str, list[tuple[str, Network]]] = {
    "p4lang": [
        (
            P4LANG,
            Network(
                [("h1", 0, "s1", 40 * 10**6, 10 * _US), ("h2", 1, "s2", GBPS, 2000 * _US)],
                [("s1", "edge", 3), ("s2", "leaf", -1)],
                [("s1", "s2", *_DEFAULT)],
            ),
        ),
        (
            P4LANG_2018,
            Network(
                [("h1", 0, "s1", 500_000, 0), ("h2", 1, "s2", *_DEFAULT)],
                [("s1", "leaf", -1), ("s2", "leaf", -1)],
                [("s1", "s2", *_DEFAULT)],
            ),
        ),
    ],
    "node-link": [
        (
            NODE_LINK,
            Network(
                [("a", 0, "t0", 25 * GBPS, 500), ("b", 1, "t1", 10_500_000, 2 * _US)],
                [("t0", "leaf", -1), ("t1", "spine", 2)],
                [("t0", "t1", *_DEFAULT)],
            ),
        ),
        (
            FNSS,
            Network(
                [("n3", 0, "n2", GBPS, 0)],
                [("n0", "core", -1), ("n1", "agg", 0), ("n2", "edge", 0)],
                [("n0", "n1", 40 * GBPS, 3 * _US), ("n1", "n2", 10 * GBPS, 500)],
            ),
        ),
    ],
    "hpcc-topology": [
        (
            HPCC_TOPOLOGY,
            Network(
                [("h1", 1, "s0", 100 * GBPS, 1000), ("h2", 2, "s3", 25 * GBPS, 1000)],
                [("s0", "leaf", -1), ("s3", "leaf", -1)],
                [("s0", "s3", 400 * GBPS, 2 * _US), ("s3", "s0", 400 * GBPS, 2 * _US)],
            ),
        ),
        (
            CONWEAVE_TOPOLOGY,
            Network(
                [("h0", 0, "s2", 100 * GBPS, 1000), ("h1", 1, "s2", 100 * GBPS, 1000)],
                [("s2", "leaf", -1)],
                [],
            ),
        ),
    ],
    "htsim-topo": [
        (
            TOPO,
            Network(
                [(f"h{i}", i, f"leaf{i // 2}", 100 * GBPS, 1000) for i in range(4)],
                [("leaf0", "leaf", -1), ("leaf1", "leaf", -1), ("spine0", "spine", -1)],
                [(leaf, "spine0", 100 * GBPS, 700) for leaf in ("leaf0", "leaf0", "leaf1", "leaf1")],
                50,
            ),
        ),
        (
            TOPO_THREE,
            Network(
                [(f"h{i}", i, f"edge{i}", 200 * GBPS, 10) for i in range(4)],
                [
                    *((f"edge{i}", "edge", i // 2) for i in range(4)),
                    *((f"agg{i}", "agg", i // 2) for i in range(4)),
                    *((f"core{i}", "core", -1) for i in range(4)),
                ],
                [
                    *((f"edge{i}", f"agg{i // 2 * 2 + j}", 100 * GBPS, 20) for i in range(4) for j in (0, 1)),
                    # position 0 of a pod to cores 0 and 2, position 1 to cores 1 and 3
                    *((f"agg{i}", f"core{i % 2 + 2 * j}", 100 * GBPS, 30) for i in range(4) for j in (0, 1)),
                ],
            ),
        ),
    ],
}

WORKLOADS: dict[str, list[tuple[str, FlowTable]]] = {
    "csv": [
        (
            CSV,
            FlowTable(
                (
                    Flow(2, "h1", "h5", 65536, 10 * _US, 5000),
                    Flow(3, "h5", "h1", 100, 7, None, (1,), (2 * _US,)),
                )
            ),
        ),
        (CSV_SHORT, FlowTable((Flow(2, "h1", "10.0.2.2", 10**6),))),
    ],
    "hpcc-flows": [
        (
            HPCC_FLOWS,
            FlowTable(
                (Flow(2, 2, 1, 200_000_000, 2 * 10**9), Flow(3, 3, 1, 5000, 2 * 10**9 + 7)), by_node=True
            ),
        ),
        (CONWEAVE_FLOWS, FlowTable((Flow(2, 0, 5, 4096, 1_500_000_000),), by_node=True)),
    ],
    "htsim-cm": [
        (
            CM,
            FlowTable(
                (
                    Flow(5, 0, 1, 1000, 1500),
                    Flow(6, 1, 2, 2000, after=(1,)),
                    Flow(7, 2, 0, 10),
                    Flow(8, 2, 1, 4000, after=(2, 3)),
                ),
                hosts=3,
            ),
        ),
        (CM_SHORT, FlowTable((Flow(3, 0, 1, 12),), hosts=2)),
        (
            CM_MULTISHOT,
            FlowTable(
                (
                    Flow(4, 0, 1, 10),
                    Flow(5, 0, 2, 20),
                    Flow(6, 1, 0, 30),
                    Flow(7, 0, 1, 40, after=(1, 2, 3), after_count=1),
                    Flow(8, 0, 2, 50, after=(1, 2, 3), after_count=2),
                ),
                hosts=3,
            ),
        ),
    ],
    "goal": [
        (
            GOAL,
            FlowTable(
                (
                    Flow(4, 0, 1, 8192, 5000),
                    Flow(9, 0, 1, 1, 100, after=(3, 1), after_ns=(100, 0)),
                    Flow(16, 1, 0, 16, after=(1,)),
                ),
                hosts=2,
            ),
        ),
        (GOAL_STARTS, FlowTable((Flow(3, 0, 2, 1), Flow(6, 0, 1, 2, 70)), hosts=3)),
    ],
}

DISTRIBUTIONS: dict[str, list[tuple[str, Any]]] = {
    "sizes": [
        (SIZES, ((0, 0.0), (1000, 0.5), (3000, 1.0))),
        # a quarter has 100 bytes, a quarter 500, half 1100: the mean is 700
        (HOMA, ((100, 0.0), (100, 0.25), (500, 0.25), (500, 0.5), (1100, 0.5), (1100, 1.0))),
    ],
    "sizes-toml": [(TOML, ((10, 0.5), (20, 1.0))), (TOML_ONE, ((7, 1.0),))],
}

TEXTS = {
    name: [text for text, _ in cases]
    for group in (NETWORKS, WORKLOADS, DISTRIBUTIONS)
    for name, cases in group.items()
}
