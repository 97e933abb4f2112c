# SPDX-License-Identifier: Apache-2.0
"""Settings of the transport tcp: a window-based sender with bursts. HF²T (Chen et al., APNet 2024), §3,
compares the gaps between its packets with those of RDMA.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tailrace.hosts.options.ranges import RangeChecked
from tailrace.spec import keys

_MOST_BURST_BYTES = 1 << 20
_MOST_INITIAL_PACKETS = 1 << 16
_MOST_DUPLICATES = 1 << 12
_INITIAL = keys.integer(
    "iw", "initial window, in packets", least=1, most=_MOST_INITIAL_PACKETS, section="RFC 6928"
)
_BURST = keys.size(
    "tso",
    "maximum payload of a burst, which is handed to the NIC at once and sent back to back",
    least=1,
    most=_MOST_BURST_BYTES,
)
_DUPLICATES = keys.integer(
    "dupacks",
    "number of later packets after whose arrival a missing packet counts as lost",
    least=1,
    most=_MOST_DUPLICATES,
    section="RFC 6675",
)


@dataclass(frozen=True, slots=True)
class TcpConfig(RangeChecked):
    """The transport tcp; ACK coalescing and the minimum RTO are in NicConfig.

    By default a burst is the 64 KB of segmentation offload; a burst of one packet means no offload.
    """

    initial_packets: Annotated[int, _INITIAL] = 10
    burst_bytes: Annotated[int, _BURST] = 65_536
    duplicates: Annotated[int, _DUPLICATES] = 3
