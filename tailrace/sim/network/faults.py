# SPDX-License-Identifier: Apache-2.0
"""Faults of a virtual network: slow or dead links, frame loss, blackholes, switch restarts."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable, Iterable
from ipaddress import IPv4Address

from tailrace.sim.network.core import NEVER_PS
from tailrace.sim.network.errors import NetworkError
from tailrace.sim.network.fabric import Fabric
from tailrace.sim.network.match import FrameMatch
from tailrace.sim.network.prng import SplitMix64, threshold
from tailrace.sim.network.wire import FrameTest, Wire
from tailrace.spec.constants import PS_PER_NS


def _end_ps(until_ns: int | None) -> int:
    return NEVER_PS if until_ns is None else until_ns * PS_PER_NS


class Faults(Fabric):
    """A network with faults. For each time parameter, None or a past time means now."""

    _drops = 0
    """Number of calls of `drop` so far; it seeds a separate random stream for each call."""

    @functools.cached_property
    def _dead_for(self) -> dict[int, int]:
        """By the index of a wire (one direction of a link): the number of causes (link failures, switch
        restarts) that keep it down.
        """
        return {}

    def link_rate(self, a: str, b: str, factor: float, at_ns: int | None = None) -> None:
        """Sets the rate of all links between `a` and `b`, both directions, to a multiple of the nominal rate.

        A frame that is being sent keeps its old rate.

        Raises:
            NetworkError: no such link, the rate would be less than 1 bit/s, or the network is closed.
        """
        wires = self._both_directions(a, b)
        rates = [round(wire.nominal_rate_bps * factor) for wire in wires]
        if min(rates) < 1:
            raise NetworkError(f"factor {factor} leaves no rate on the link between {a} and {b}")

        def apply() -> None:
            for wire, rate_bps in zip(wires, rates, strict=True):
                self._net.set_rate(wire.index, rate_bps)
                wire.rate_bps = rate_bps

        self.call_at(at_ns, apply)

    def link_down(self, a: str, b: str, at_ns: int | None = None) -> None:
        """Takes all links between `a` and `b` down: frames on them and in their queues are lost. They come up
        when each cause has ended: each call of `link_down`, and each restart of a switch at their ends.
        """
        wires = self._both_directions(a, b)
        self.call_at(at_ns, lambda: self._set_links(wires, up=False))

    def link_up(self, a: str, b: str, at_ns: int | None = None) -> None:
        """Takes all links between `a` and `b` up again."""
        wires = self._both_directions(a, b)
        self.call_at(at_ns, lambda: self._set_links(wires, up=True))

    def _set_links(self, wires: list[Wire], *, up: bool) -> None:
        for wire in wires:
            causes = self._dead_for[wire.index] = max(
                0, self._dead_for.get(wire.index, 0) + (-1 if up else 1)
            )
            if wire.up == up or (up and causes):
                continue
            self._net.set_up(wire.index, up)
            name, port = wire.source.node, wire.source.port
            if name in self._switches:
                self._switches[name].port_set(port, up)
                self._endpoints[name].device.port_changed(port, up=up)
                self._net.settle(self._numbers[name])

    def drop(
        self,
        a: str,
        b: str,
        rate: float,
        *,
        matches: FrameMatch | FrameTest | None = None,
        from_ns: int = 0,
        until_ns: int | None = None,
        one_way: bool = False,
        only_data: bool = False,
    ) -> None:
        """Loses a share of the frames on the links between `a` and `b`, or only from `a` to `b`.

        Args:
            rate: the probability, from 0 to 1, to lose a frame that `matches` selects (None: every frame). A
                FrameMatch is fast; any other function is called in Python for every frame.
            from_ns, until_ns: when frames are lost, by the time of their arrival.
            only_data: of these frames only data packets, also trimmed ones, are lost.

        Raises:
            NetworkError: there is no such link, or `rate` is not from 0 to 1.
        """
        if not 0 <= rate <= 1:
            raise NetworkError(f"drop rate {rate} is not between 0 and 1")
        self._drops += 1
        match = matches if isinstance(matches, FrameMatch) else FrameMatch.ALL
        test = None if isinstance(matches, FrameMatch) else matches
        # for rate 1 the threshold is 2**64, which exceeds NEVER_PS, the largest 64-bit number: then a flag
        # says that every frame is lost
        loss_threshold = threshold(rate)
        for wire in self.wires_between(a, b) if one_way else self._both_directions(a, b):
            # a random stream per wire and fault: the losses by one fault do not change those by another
            random = SplitMix64(self._seed, wire.index, self._drops).state
            self._net.drop(
                wire.index,
                min(loss_threshold, NEVER_PS),
                loss_threshold > NEVER_PS,
                random,
                from_ns * PS_PER_NS,
                _end_ps(until_ns),
                match.other_types,
                match.mask,
                match.udp_port,
                only_data,
                test,
            )

    def blackhole(
        self, switch: str, pairs: Iterable[tuple[str, str]], from_ns: int = 0, until_ns: int | None = None
    ) -> None:
        """Makes a switch silently discard packets that enter it, by IPv4 source and destination address; only
        a counter shows the loss.

        Args:
            pairs: source and destination addresses.
            from_ns, until_ns: when packets are discarded, by the time of their arrival.

        Raises:
            NetworkError: there is no such switch, or an address is invalid.
        """
        self._check_switch(switch)
        try:
            numbers = array("Q", (int(IPv4Address(a)) << 32 | int(IPv4Address(b)) for a, b in pairs))
        except ValueError as error:
            raise NetworkError(f"blackhole at {switch}: {error}") from None
        if self.has(switch):  # else another rank (process of this run) has the switch
            number = self._numbers[switch]
            self._net.blackhole(number, numbers.tobytes(), from_ns * PS_PER_NS, _end_ps(until_ns))

    def _check_switch(self, name: str) -> None:
        if name not in self._numbers or name in self._hosts:
            raise NetworkError(f"there is no switch {name}")

    def switch_restart(self, name: str, at_ns: int | None, down_ns: int, restore: Callable[[], None]) -> None:
        """Restarts a switch: its state and the frames in it are lost, its links are down for `down_ns`.

        Args:
            restore: called when the links are up again; until a pipeline is set the switch drops everything.

        Raises:
            NetworkError: there is no such switch.
        """
        self._check_switch(name)
        wires = [wire for wire in self.wires if name in (wire.source.node, wire.target.node)]

        def go_down() -> None:
            self._set_links(wires, up=False)
            if self.has(name):
                self._endpoints[name].restart()
                self._net.settle(self._numbers[name])
            self.call_at(self.now_ns + down_ns, come_back)

        def come_back() -> None:
            self._set_links(wires, up=True)
            restore()

        self.call_at(at_ns, go_down)
