# SPDX-License-Identifier: Apache-2.0
"""NICs in virtual time on wires that delay, lose and reorder: an event loop of a few lines."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tailrace.codec.nic import port
from tailrace.codec.templates import ip_number
from tailrace.hosts.flows.flow import FlowRecord, FlowSpec
from tailrace.hosts.flows.observation import ReceiverObservation, SenderObservation
from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.nic.nic import Nic
from tailrace.hosts.options.nic import NicConfig
from tests.codec.frames import Data, Frame, Parsed, parse

RATE_BPS = 8_000_000_000  # a byte takes a nanosecond
END_NS = 60_000_000_000

# Where a frame goes: (now, frame, what it says) -> delay in ns; None: it is lost.
Fate = Callable[[int, Frame, Parsed], int | None]


def address(number: int) -> tuple[str, str]:
    return f"10.0.0.{number}", f"02:00:0a:00:00:{number:02x}"


def make_nic(
    number: int, config: NicConfig, seed: int = 0, paths: Callable[[str], PathList] | None = None
) -> Nic:
    ip, mac = address(number)
    rng = random.Random(seed * 1000 + number)
    return Nic(ip=ip, mac=mac, gateway_mac="02:00:00:00:00:fe", config=config, rng=rng, paths=paths)


def flow(number: int, length_bytes: int, *, src: int = 1, dst: int = 2, start_ns: int = 0) -> FlowSpec:
    return FlowSpec(
        number,
        address(src)[0],
        address(dst)[0],
        length_bytes,
        start_ns,
        qpn=100 + number,
        sport=2000 + number,
    )


@dataclass
class Arrival:
    """A frame that has arrived, and what it says."""

    now_ns: int
    nic: Nic
    frame: Frame
    parsed: Parsed


@dataclass
class VirtualNetwork:
    """Joins NICs: what one sends arrives at the one it is addressed to, after what `fate` says.

    change: what switches make of a frame on the way.
    sent, arrivals: every frame with its time, in order. The length of a frame counts as it is on the wire, so a
    NIC sends the next one only when the last one has left.
    """

    nics: Sequence[Nic]
    fate: Fate = lambda now_ns, frame, parsed: 1000
    change: Callable[[Frame, Parsed], Frame] = lambda frame, parsed: frame
    arrivals: list[Arrival] = field(default_factory=list)
    sent: list[Arrival] = field(default_factory=list)
    now_ns: int = 0

    def __post_init__(self) -> None:
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0
        self._free_ns = {id(nic): 0 for nic in self.nics}
        self._wake_ns: dict[int, int] = {}
        self._by_ip = {ip_number(nic.ip): nic for nic in self.nics}
        self._ports = {id(nic): port(nic) for nic in self.nics}

    def add(self, *flows: FlowSpec) -> None:
        """Adds flows at both their ends."""
        for spec in flows:
            self._by_ip[ip_number(spec.src)].add_flow(spec)
            self._by_ip[ip_number(spec.dst)].expect_flow(spec)

    def at(self, time_ns: int, action: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (time_ns, self._number, action))

    def run(self, until_ns: int = END_NS) -> None:
        """Runs until all flows are complete and nothing is under way, or until a time."""
        for nic in self.nics:
            self._pull(nic)
        while self._events and self._events[0][0] <= until_ns:
            self.now_ns, _, action = heapq.heappop(self._events)
            action()
            for nic in self.nics:
                self._pull(nic)

    def _pull(self, nic: Nic) -> None:
        now_ns = self.now_ns
        if now_ns < self._free_ns[id(nic)]:
            return
        frame = self._depart(nic)
        if not isinstance(frame, Frame):
            if frame is not None and not nic.idle:
                self._wake(nic, frame)
            return
        left_ns = now_ns + frame.length_bytes
        self._free_ns[id(nic)] = left_ns
        self._wake(nic, left_ns)
        parsed = parse(frame.data, frame.virtual_bytes)
        self.sent.append(Arrival(now_ns, nic, frame, parsed))
        delay_ns = self.fate(now_ns, frame, parsed)
        if delay_ns is not None:
            peer = self._by_ip[int.from_bytes(frame.data[30:34], "big")]
            self.at(left_ns + delay_ns, lambda: self._deliver(peer, frame, parsed))

    def _depart(self, nic: Nic) -> Frame | int | None:
        """What the NIC sends now, or when it may have something; None: when something arrives."""
        sent = self._ports[id(nic)].depart(self.now_ns)
        return Frame(*sent) if isinstance(sent, tuple) else sent

    def hand_in(self, nic: Nic, frame: bytes, virtual_bytes: int = 0) -> None:
        """A frame is at a NIC now."""
        self._ports[id(nic)].arrive(self.now_ns, frame, virtual_bytes)

    def _wake(self, nic: Nic, time_ns: int) -> None:
        if self._wake_ns.get(id(nic), 0) != time_ns:
            self._wake_ns[id(nic)] = time_ns
            self.at(time_ns, lambda: None)

    def _deliver(self, nic: Nic, frame: Frame, parsed: Parsed) -> None:
        frame = self.change(frame, parsed)
        self.arrivals.append(Arrival(self.now_ns, nic, frame, parsed))
        self.hand_in(nic, frame.data, frame.virtual_bytes)

    def data_arrivals(self) -> list[Data]:
        return [arrival.parsed for arrival in self.arrivals if isinstance(arrival.parsed, Data)]

    def data_sent(self) -> list[Data]:
        return [arrival.parsed for arrival in self.sent if isinstance(arrival.parsed, Data)]

    def records(self) -> list[FlowRecord]:
        return Nic.merge(*self.nics)

    def senders(self) -> list[SenderObservation]:
        return [seen for nic in self.nics for seen in nic.records() if isinstance(seen, SenderObservation)]

    def receivers(self) -> list[ReceiverObservation]:
        return [seen for nic in self.nics for seen in nic.records() if isinstance(seen, ReceiverObservation)]
