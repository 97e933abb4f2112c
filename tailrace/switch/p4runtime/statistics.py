# SPDX-License-Identifier: Apache-2.0
"""The counts of a switch's ports and buffer, as a dictionary or a JSON file.

    {"time_ns": ..., "ports": {"1": {"rx_packets": ..., "pfc": {"0": {"xoff_sent": ...}}}},
     "buffer": {"shared_most_bytes": ...}, "drops": {"pfc_headroom": ...}}

Fields are those of switch.core's PortStats, PfcStats and BufferState; priorities without PFC are left out.
`queued_packets` and `queued_bytes` wait in all queues of a port.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import asdict

from tailrace.spec.atomic import write_file
from tailrace.switch.core import V1ModelSwitch
from tailrace.switch.core.lib import C


def statistics(switch: V1ModelSwitch, ports: Iterable[int], now_ns: int) -> dict[str, object]:
    """All counts up to the time `now_ns`.

    Args:
        ports: the ports to include; empty: those with a count above 0.
    """
    numbers = sorted(ports) or [port for port in range(C.TR_MAX_PORTS) if _counted(switch, port)]
    return {
        "time_ns": now_ns,
        "ports": {str(port): _port(switch, port, now_ns) for port in numbers},
        "buffer": asdict(switch.buffer()),
        "drops": switch.drops(),
    }


def _counted(switch: V1ModelSwitch, port: int) -> bool:
    return any(asdict(switch.port_stats(port)).values())


def _port(switch: V1ModelSwitch, port: int, now_ns: int) -> dict[str, object]:
    pfc = {str(priority): asdict(counts) for priority, counts in switch.pfc_stats_all(port, now_ns).items()}
    levels = (switch.queue_depth(port, priority) for priority in range(C.TR_MAX_PRIORITIES))
    packets, octets = map(sum, zip(*levels, strict=True))
    queued = {"queued_packets": packets, "queued_bytes": octets}
    return {**asdict(switch.port_stats(port)), **queued, "pfc": pfc}


def write_statistics(path: Path, switch: V1ModelSwitch, ports: Iterable[int], now_ns: int) -> None:
    """Writes all counts to a file, atomically.

    Raises:
        OSError: it cannot be written.
    """
    write_file(path, json.dumps(statistics(switch, ports, now_ns)) + "\n")
