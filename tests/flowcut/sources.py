# SPDX-License-Identifier: Apache-2.0
"""NICs that send scripted packets: whatever gaps and sizes a test asks for, obeying pauses or not."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from tailrace.sim.network import Network
from tests.flowcut.frames import ROCE, XON, Key, Kind, make, parse
from tests.frame_nic import FrameNic

_MOST_LEFT = 127


@dataclass(frozen=True)
class Packet:
    """`gap_ns` is the least time since the packet before it was handed to the wire."""

    gap_ns: int
    nbytes: int


@dataclass(frozen=True)
class Script:
    """A flow. `pause_timeout_ns`: how long the source obeys an XOFF without XON (Flowcut §IV-A); 0: it never
    obeys."""

    src: str
    dst: str
    sport: int
    dport: int
    protocol: int
    start_ns: int
    packets: tuple[Packet, ...]
    pause_timeout_ns: int = 0


@dataclass
class _Flow:
    key: Key
    script: Script
    ids: range
    ready_ns: int
    sent: int = 0
    paused_until_ns: int = 0
    credit_bytes: int = 0

    def next_ns(self) -> int:
        return max(self.ready_ns, self.paused_until_ns)

    @property
    def done(self) -> bool:
        return self.sent == len(self.script.packets)


@dataclass(frozen=True)
class OutFrame:
    data: bytes
    virtual_bytes: int = 0


@dataclass
class ScriptNic(FrameNic):
    """All flows of one host, whoever is ready first."""

    rate_bps: int = 0
    flows: list[_Flow] = field(default_factory=list)
    pauses: int = 0
    class_pauses: int = 0
    closed_until_ns: int = 0

    @property
    def idle(self) -> bool:
        return all(flow.done for flow in self.flows)

    def _pending(self) -> list[_Flow]:
        return [flow for flow in self.flows if not flow.done]

    def next_time_ns(self, now_ns: int) -> int | None:
        first = min((flow.next_ns() for flow in self._pending()), default=None)
        return None if first is None else max(first, self.closed_until_ns)

    def next_frame(self, now_ns: int) -> OutFrame | None:
        ready = [flow for flow in self._pending() if flow.next_ns() <= now_ns]
        if not ready or now_ns < self.closed_until_ns:
            return None
        flow = min(ready, key=_Flow.next_ns)
        number = flow.sent
        flow.sent += 1
        if not flow.done:
            flow.ready_ns = now_ns + flow.script.packets[flow.sent].gap_ns
        left = min(len(flow.ids) - number, _MOST_LEFT) if flow.key[3] == ROCE else 0
        return OutFrame(make(flow.key, flow.script.packets[number].nbytes, flow.ids[number], left))

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
        parsed = parse(frame, virtual_bytes)
        if parsed.kind is Kind.PFC:
            self.class_pauses += 1
            self.closed_until_ns = now_ns + -(-parsed.quanta * 512 * 10**9 // self.rate_bps)
        if parsed.kind is not Kind.PAUSE:
            return
        self.pauses += 1
        for flow in self.flows:
            if flow.key == parsed.key and flow.script.pause_timeout_ns:
                until_ns = now_ns + flow.script.pause_timeout_ns
                flow.paused_until_ns = 0 if parsed.op == XON else until_ns


def attach(network: Network, scripts: list[Script]) -> dict[Key, range]:
    """Gives every host a NIC with its flows; the packet numbers of each flow, in the order of sending."""
    nics = {host.name: ScriptNic(rate_bps=host.rate_bps) for host in network.topology.hosts}
    first = itertools.accumulate((len(script.packets) for script in scripts), initial=1)
    ids: dict[Key, range] = {}
    for script, start in zip(scripts, first, strict=False):
        src, dst = network.topology.host(script.src), network.topology.host(script.dst)
        key = (src.ip, dst.ip, script.sport, script.dport, script.protocol)
        assert key not in ids, "flows differ"
        ids[key] = range(start, start + len(script.packets))
        nics[src.name].flows.append(_Flow(key, script, ids[key], script.start_ns + script.packets[0].gap_ns))
    for name, nic in nics.items():
        network.attach(name, nic)
    return ids
