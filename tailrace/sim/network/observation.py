# SPDX-License-Identifier: Apache-2.0
"""Observation: counts, the trace hash, taps, captures, samples of queues, paths of flows. A wire is one
direction of a link. A rank is a process that runs a part of the network.
"""

from __future__ import annotations

import hashlib
import heapq
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import NamedTuple, cast

import msgspec

from tailrace.sim.network.account import NetworkAccount
from tailrace.sim.network.core import WireAccount
from tailrace.sim.network.errors import NetworkError
from tailrace.sim.network.fabric import Fabric
from tailrace.sim.network.record import FlowKey, FrameRecord, read_records
from tailrace.sim.network.transits import WireTransit, read_transits
from tailrace.sim.network.wire import Tap, Wire
from tailrace.spec.constants import PS_PER_NS


class TrafficCounts(msgspec.Struct, frozen=True):
    """Counts of frames since the start.

    `packet_hops`: entered switches, packet-outs included; `delivered`: delivered by wires; `lost`: lost to
    faults: `cut` on links that went down or were down, `dropped` by the fault `drop`, `swallowed` by
    `blackhole`; `unwired`: sent by switches to a port without a wire.
    """

    packet_hops: int
    delivered: int
    cut: int
    dropped: int
    swallowed: int
    unwired: int

    @property
    def lost(self) -> int:
        """All frames lost to faults."""
        return self.cut + self.dropped + self.swallowed


class DataFrames(msgspec.Struct, frozen=True):
    """Data frames that no host has received.

    `dropped` by switches, or sent to a port without a wire; `lost` to faults; `under_way` in switches and on
    wires. Frames that were trimmed (their payload cut off by a switch) are counted separately. Clones are not
    counted.
    """

    dropped: int
    dropped_trimmed: int
    lost: int
    lost_trimmed: int
    under_way: int


class PortSamples(NamedTuple):
    """The samples of one port, by time: bytes in all its queues; bytes of the frames that it has begun to
    send since the previous sample; a bit mask of the priorities that are paused.
    """

    queue_bytes: Sequence[int]
    tx_bytes: Sequence[int]
    paused: Sequence[int]


class Samples(msgspec.Struct, frozen=True):
    """Periodic samples of ports of switches, by (switch, port), with a value for each of `times_ns`."""

    times_ns: Sequence[int]
    ports: dict[tuple[str, int], PortSamples]


class Sight(NamedTuple):
    """An arrival of a packet of a watched flow at a switch. `psn` is None if the packet has no PSN."""

    time_ps: int
    switch: str
    in_port: int
    psn: int | None


def _added(counts: Sequence[WireAccount]) -> WireAccount:
    """Adds up the counts that several ranks have of one wire."""
    amounts = [tuple(map(sum, zip(*each, strict=True))) for each in zip(*counts, strict=True)]
    return cast("WireAccount", tuple(amounts))


def _addresses(src: str, dst: str) -> tuple[int, int]:
    try:
        return int(IPv4Address(src)), int(IPv4Address(dst))
    except ValueError as error:
        raise NetworkError(f"no flow to watch: {error}") from None


def _column(code: str, raw: bytes | None) -> array[int]:
    values = array(code)
    values.frombytes(raw or b"")
    return values


class Observation(Fabric):
    """A network that can be observed."""

    _sampled: tuple[Wire, ...] = ()

    def traffic(self) -> TrafficCounts:
        """Counts of frames since the start, in all ranks."""
        return TrafficCounts(*map(sum, zip(*self.all_gather(self._net.traffic()), strict=True)))

    def data(self) -> DataFrames:
        """Counts of the data frames that no host has received, in all ranks."""
        return DataFrames(*map(sum, zip(*self.all_gather(self._net.data()), strict=True)))

    def account(self) -> NetworkAccount:
        """Where all frames are now; frames injected directly into a switch are not counted."""
        accounts, wires = self._net.account()
        local = zip(self._switches.items(), accounts, strict=True)
        switches = self.gathered(
            {self._numbers[name]: (account, switch.drops()) for (name, switch), account in local}
        )
        # a wire between two ranks is counted at its source by one and at its target by the other
        totals = [_added(each) for each in zip(*self.all_gather(wires), strict=True)]
        hosts = self._hosts
        ends = [(wire.name, wire.source.node in hosts, wire.target.node in hosts) for wire in self.wires]
        reasons: Counter[str] = Counter()
        for _, drops in switches.values():
            reasons.update(drops)
        names = [item.name for item in self.topology.switches]
        by_name = {name: account for name, (account, _) in zip(names, switches.values(), strict=True)}
        return NetworkAccount.of(by_name, zip(ends, totals, strict=True), reasons)

    @property
    def trace_sha256(self) -> str:
        """A hash of all frames that each wire has delivered, with their arrival times."""
        local = self._net.trace()
        # a rank has zeros for the wires of other ranks
        total = sum(int.from_bytes(trace, "little") for trace in self.all_gather(local))
        return hashlib.sha256(total.to_bytes(len(local), "little")).hexdigest()

    def tap(self, tap: Tap, wires: list[Wire] | None = None) -> None:
        """Calls `tap` for each event of some wires (None: of all).

        From then on the network handles one instant after the other, so that taps see all events in order
        and may inspect any part of the network; that is slow.

        Raises:
            NetworkError: the network has several ranks.
        """
        for wire in self.wires if wires is None else wires:
            wire.tap(tap)

    def capture(self, path: Path, wires: list[Wire] | None = None) -> None:
        """Writes the frames that arrive on some wires (None: on all) to a pcapng file, which `close` closes.

        Frames are sorted by time. Whenever the network is not running, the file is complete so far.

        Raises:
            NetworkError: the file cannot be written.
        """
        chosen = self.wires if wires is None else wires
        self._net.capture(path, [(wire.index, wire.name) for wire in chosen])

    def sample(self, period_ns: int, wires: list[Wire] | None = None) -> None:
        """Samples the switch ports at which some wires begin (None: all switch ports), now and periodically.

        Each sample takes 9 bytes of memory per port. Earlier samples are discarded.

        Raises:
            NetworkError: the period is not positive, or a wire begins at a host.
        """
        if period_ns < 1:
            raise NetworkError(f"a period of {period_ns} ns is not positive")
        chosen = (
            [wire for wire in self.wires if wire.source.node not in self._hosts] if wires is None else wires
        )
        for wire in chosen:
            if wire.source.node in self._hosts:
                raise NetworkError(f"{wire.name} does not begin at a switch")
        local = [wire.index for wire in chosen if self.has(wire.source.node)]
        self._net.sample(period_ns * PS_PER_NS, local)
        self._sampled = tuple(chosen)

    def samples(self) -> Samples:
        """The samples so far.

        Raises:
            NetworkError: `sample` was not called.
        """
        if not self._sampled:
            raise NetworkError("nothing is sampled")
        times, queued, sent, paused = self._net.samples()
        wires = [wire for wire in self._sampled if self.has(wire.source.node)]
        # the values of all ports at the first sample, then at the second sample, and so on
        rows = (_column("I", queued), _column("I", sent), paused or b"")
        columns = self.gathered(
            {wire.index: PortSamples(*(row[k :: len(wires)] for row in rows)) for k, wire in enumerate(wires)}
        )
        times_ns = array("Q", (time_ps // PS_PER_NS for time_ps in _column("Q", times)))
        ports = {(wire.source.node, wire.source.port): columns[wire.index] for wire in self._sampled}
        return Samples(times_ns, ports)

    def watch_flow(self, src: str, dst: str) -> int:
        """Records from now on at which switches packets from one IPv4 address to another arrive; returns the
        number of this watch, for `sights`.

        Raises:
            NetworkError: an address is invalid.
        """
        return self._net.watch(*_addresses(src, dst))

    def sights(self, watch: int) -> list[Sight]:
        """All arrivals so far that a watch has recorded, by time."""
        switches = self.topology.switches
        # each rank's list is sorted by time and switch, and a switch is in one rank only
        sights = heapq.merge(*self.all_gather(self._net.watched(watch)), key=lambda sight: sight[:2])
        return [Sight(time_ps, switches[switch].name, port, psn) for time_ps, switch, port, psn in sights]

    def record(self, *, packets: bool) -> None:
        """Records from now on losses, recirculations, PFC frames and trimmed packets; with `packets`, the
        arrival of every frame on every wire. A record takes 40 bytes of memory.

        Raises:
            NetworkError: there is a record already, or the network has several ranks.
        """
        self._net.record(packets)

    def recorded(self, flows: Mapping[FlowKey, int]) -> Iterator[FrameRecord]:
        """All records so far, by time; `flows` has the ids of flows, by both directions of each.

        Raises:
            NetworkError: there were too many records for the memory.
        """
        entries, is_full = self._net.recorded()
        if is_full:
            raise NetworkError("the record has too many frames: record events only, or run fewer flows")
        names = [switch.name for switch in self.topology.switches]
        return read_records(entries, self.wires, names, flows)

    def log_flow(self, src: str, dst: str) -> None:
        """Logs each transit of a wire by packets between two IPv4 addresses, in both directions, and by
        non-IPv4 frames on wires to the host of `src`; `transits` reads the log. A transit takes some 50 bytes
        of memory plus the frame.

        Raises:
            NetworkError: an address is invalid, a log exists already, or the network has several ranks.
        """
        a, b = _addresses(src, dst)
        hosts = {host.name for host in self.topology.hosts if host.ip == src}
        to_source = [wire.index for wire in self.wires if wire.target.node in hosts]
        self._net.log(a, b, [wire.index for wire in self.wires], to_source)

    def transits(self) -> list[WireTransit]:
        """Reads and clears the log; sorted by the time of sending."""
        return read_transits(self._net.logged(), self.wires)
