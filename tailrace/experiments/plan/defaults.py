# SPDX-License-Identifier: Apache-2.0
"""What an experiment is where nobody says otherwise, and what `make run` shows."""

from __future__ import annotations

TOPOLOGY = "leaf-spine:leaves=2,spines=4,hosts=4,rate=10Gbps,delay=1us"
_WORKLOAD = "permutation:size=1MiB,peers=remote"
_SMALL_WORKLOAD = "permutation:size=512KiB,peers=remote"

SEED = 2
"""With this seed ECMP puts several flows of a default workload on one uplink of TOPOLOGY, and some on the
link that SLOW_LINK slows down: tests/experiments/test_default_run.py observes it."""

MTU_BYTES = 1024
"""Payload of a full packet."""

SLOW_LINK = "link-slow:link=leaf1-spine1,factor=0.1"
BASELINE = "ecmp"
SCHEMES = (BASELINE, "letflow", "flowcut")
"""What is compared; ratios are against the first."""


STEERED = "spritz"
STEERED_TOPOLOGY = "dragonfly:p=1,a=2,h=2,groups=3,rate=10Gbps,delay=1us"
"""For Spritz: the smallest Dragonfly with a third group, and two links between each two groups."""

STEERED_BASELINES = ("minimal:draw=hop", "ugal-l:draw=hop")
"""What it is compared with: the routing of switches, under the same transport and trimming."""

DEAD_LINK = "link-down:link=r1_1-r2_1,at=200us,until=3ms"
"""A link that fails while all flows of the default workload are under way, and comes back."""

LOSSLESS = "rlb"
LOSSLESS_VARIANT = "drill"
LOSSLESS_SEED = 3
LOSSLESS_TOPOLOGY = "leaf-spine:leaves=2,spines=4,hosts=6,rate=10Gbps,delay=1us,restricted=h10/1"
"""For RLB: four paths, one of which leads to the host that is to be congested."""

LOSSLESS_WORKLOAD = (
    "paused:load=0.25,duration=1500us,size=64KiB,pairs=3,servers=2,burst=8,bytes=64KiB,bursts=3,at=100us,"
    "long=2MiB"
)
"""That host gets more than its link carries, by the one path and by bursts from its own leaf, and beside it
are flows that nothing congests and that take all paths; only they are measured (RLB §II-B).
"""

LOSSLESS_WORKLOAD_ELSEWHERE = "incast:degree=3,size=512KiB,bystanders=4,peers=remote"
"""In other topologies, which may have no such path."""

LOSSLESS_OPTIONS = {"queue": "0"}
PREDICTION_OPTIONS = {"margin": "20us"}
"""Of all schemes there: what is lossless has no limit of its own. And of RLB: a warning is to come some
packets before the pause also at 10 Gbps.
"""

LOSSLESS_PFC = "64KiB"
LOSSLESS_WINDOW = "64KiB"
TAGGED = "hermes"
TAGGED_TRANSPORT = "dcqcn:clamp=no"
"""Hermes looks at marks, as only DCQCN's packets have them; the others go with the default, go-back-N."""

FLOWLETS = "letflow"
HF2T_SEED = 2
HF2T_TOPOLOGY = "fat-tree:k=4,rate=10Gbps,delay=1us"
HF2T_WORKLOAD = "poisson:cdf=websearch,most=500KB,load=0.7,duration=2ms"
HF2T_TRANSPORT = "dcqcn:clamp=no"
HF2T_PFC = "default"
"""For HF2T: the paper's network, traffic and congestion control (HF2T §5.1) at a rate and for a time that
software holds; without its largest flows, which would be most of the traffic by themselves.
"""

HF2T_GAP = "100us"
HF2T_TRAIN = "300"
"""The flowlet threshold of LetFlow and NICs: five base RTTs there (HF2T §3: usually two at least); at two
go-back-N pays for flowlets that overtake each other what they gain. And the gaps from which a
NIC learns: in so short a time few leave it.
"""


def workload(target: str) -> str:
    """What is sent: less on BMv2, whose links are several times slower than those of the other targets."""
    return _SMALL_WORKLOAD if target == "bmv2" else _WORKLOAD
