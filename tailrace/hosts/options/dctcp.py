# SPDX-License-Identifier: Apache-2.0
"""Settings of the transport dctcp: an ECN-controlled window, which QuickAdapt lowers after losses, and
FastIncrease raises while there are no marks (Spritz §IV-C, hosts.transport.ecn_window).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tailrace.hosts.options.ranges import ABOVE_0, RangeChecked
from tailrace.spec import keys


@dataclass(frozen=True, slots=True)
class DctcpConfig(RangeChecked):
    """The window of the transport dctcp.

    cut_packets: packets that an ACK with a mark subtracts.
    adapt_rtts: duration of an interval of QuickAdapt, in units of NicConfig.path_rtt_ns.
    adapt_scale: after an interval with losses the window becomes this times the bytes that arrived during it;
        0: no QuickAdapt.
    increase_packets: packets that FastIncrease adds for each acknowledgment; 0: no FastIncrease.
    feedback_bytes: the steering learns of an unmarked ACK only after this many bytes were acknowledged since
        the last ACK of which it has learnt.
    """

    cut_packets: Annotated[
        float,
        keys.number("cut", "packets that a marked ACK takes off the window", least=0, section="MP-RDMA §3"),
    ] = 0.5
    adapt_rtts: Annotated[float, ABOVE_0] = 1.5
    adapt_scale: Annotated[
        float,
        keys.number(
            "adapt",
            "QuickAdapt: share of the bytes that arrived, which the window becomes after losses; 0: never",
            least=0,
            most=1,
            section="Spritz §IV-C",
        ),
    ] = 0.8
    increase_packets: Annotated[
        float,
        keys.number(
            "increase",
            "FastIncrease: packets that an ACK adds after a whole window without a mark or loss; 0: never",
            least=0,
            section="Spritz §IV-C",
        ),
    ] = 0.5
    feedback_bytes: Annotated[
        int,
        keys.size(
            "feedback",
            "acknowledged bytes after which the choice of paths learns of an ACK; of marks at once",
            least=0,
            section="Spritz §IV-C",
        ),
    ] = 0
