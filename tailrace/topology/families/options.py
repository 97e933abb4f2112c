# SPDX-License-Identifier: Apache-2.0
"""The options that topologies share: rate and delay of their links, latency of their switches."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.words import Options

LINK_KEYS = ("rate", "delay", "latency")
GROUP_LINK_KEYS = (*LINK_KEYS, "local", "global", "host")
"""Where switches form groups, links may have delays by where they lead: Spritz, Table II."""

DEFAULT_RATE_BPS = 200_000_000_000
DEFAULT_DELAY_NS = 1_000
"""The links of Flowcut §III-B1."""


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """What all links and switches of a topology are like.

    local_ns, global_ns: propagation delay of links within a group of switches, and between groups
    host_ns: of the links of hosts
    latency_ns: of a switch
    """

    rate_bps: int
    local_ns: int
    global_ns: int
    host_ns: int
    latency_ns: int


def links_of(options: Options) -> LinkOptions:
    """The options as given; the delays of GROUP_LINK_KEYS are those of `delay` unless given.

    Raises:
        SpecError: no such quantity, or a rate of 0.
    """
    delay_ns = options.time_ns("delay", DEFAULT_DELAY_NS)
    return LinkOptions(
        rate_bps=options.rate_bps("rate", DEFAULT_RATE_BPS),
        local_ns=options.time_ns("local", delay_ns),
        global_ns=options.time_ns("global", delay_ns),
        host_ns=options.time_ns("host", delay_ns),
        latency_ns=options.time_ns("latency", 0),
    )
