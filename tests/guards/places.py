# SPDX-License-Identifier: Apache-2.0
"""Bottlenecks, and the schemes that can run there."""

from __future__ import annotations

from tests.guards.scene import Place

UPLINK = Place(
    "uplink",
    "leaf-spine:leaves=2,spines=1,hosts=3,rate=10Gbps,delay=1us",
    ("h1", "h4"),
    (("h2", "h5"),),
)
"""One link between victim and attacker on this side, and their destinations on the other."""

LAST_LINK = Place(
    "last-link",
    "leaf-spine:leaves=3,spines=2,hosts=2,rate=10Gbps,delay=1us",
    ("h1", "h3"),
    (("h5", "h3"),),
)
"""The attacker is elsewhere: the first switch of its frames has room for all of them, the last has not."""

CROWD = Place(
    "crowd",
    "leaf-spine:leaves=2,spines=1,hosts=4,rate=10Gbps,delay=1us",
    ("h1", "h5"),
    (("h2", "h6"), ("h3", "h7"), ("h4", "h8")),
)
"""Three attackers beside the victim."""

DRAGONFLY = Place(
    "dragonfly",
    "dragonfly:p=2,a=2,h=2,groups=3,rate=10Gbps,delay=1us",
    ("h1", "h9"),
    (("h5", "h9"),),
)
PLACES = (UPLINK, LAST_LINK, CROWD)

_QUEUE = "queue=64KiB"
_CELL = "cell=4KiB"
"""As small as this, many flowcells of the victim are counted, by each path alike."""

SELECTORS = (
    *(f"{name}:{_QUEUE}" for name in ("ecmp", "spray", "letflow", "drill", "hermes", "mp-rdma")),
    f"presto:{_CELL},{_QUEUE}",
)
FLOWCUT = tuple(f"flowcut:variant={variant},{_QUEUE}" for variant in ("full", "ingress", "nic"))
RLB = (
    *(f"rlb:variant={variant},{_QUEUE}" for variant in ("drill", "letflow", "hermes")),
    f"rlb:variant=presto,{_CELL},{_QUEUE}",
)
ROUTED = tuple(f"{name}:{_QUEUE}" for name in ("minimal", "valiant", "ugal-l", "letflow")) + FLOWCUT
STEERED = (
    *(f"spritz:variant={variant},{_QUEUE}" for variant in ("scout", "spray")),
    *(f"spritz:mode=coarse,{_QUEUE}", f"spritz:trim=no,{_QUEUE}", f"spritz:marks=yes,{_QUEUE}"),
    *(f"{name}:draw=hop,{_QUEUE}" for name in ("minimal", "ugal-l")),
)
"""Not `valiant:draw=hop`: each packet draws its links, and in so small a network what a victim gets beside the same
plain data differs by a fifth from run to run. Of what hosts say it knows nothing else than its neighbours here.
"""
