# SPDX-License-Identifier: Apache-2.0
"""A NIC: many flows in both directions on one link.

Pull model, no I/O and no clock: whoever owns the link hands in every arriving frame, and asks for the next
frame whenever the link is free and `next_time_ns` has come. Frames of control go first, then data flows
take turns.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, deque

from hosts.config import FlowcutNicConfig, NicConfig
from hosts.errors import ConfigError
from hosts.flow import FlowRecord, FlowSpec
from hosts.flowcut_nic import MinRtt
from hosts.frame import Frame
from hosts.observation import Observation, merge
from hosts.pause import PfcState
from hosts.receiver import FlowReceiver
from hosts.sender import FlowSender
from hosts.templates import Address, ip_number
from hosts.wire import Ack, Cnp, Data, Junk, NicAcked, Parsed, Pause, Pfc, parse


class Nic:
    """One NIC.

    Attributes:
        counters: frames that were of no use, by reason: other, malformed, bad_icrc, not_ours, unexpected.
    """

    def __init__(self, *, ip: str, mac: str, gateway_mac: str, config: NicConfig, rng: random.Random) -> None:
        """Args:
        ip, mac: the NIC's own addresses, in dotted and in colon form.
        gateway_mac: where it sends all its frames.
        rng: chooses source ports (Flowcut §II-D).
        """
        self.ip = ip
        self.mac = mac
        self.config = config
        self.counters: Counter[str] = Counter()
        self._ip = ip_number(ip)
        self._gateway_mac = gateway_mac
        self._rng = rng
        self._min_rtt = MinRtt(config.flowcut_nic.ns_per_byte) if config.flowcut_nic else None
        self._pfc = PfcState(config.link_rate_bps)
        self._senders: dict[tuple[int, int], FlowSender] = {}  # by destination and queue pair
        self._senders_to: dict[int, list[FlowSender]] = {}
        self._receivers: dict[tuple[int, int], FlowReceiver] = {}  # by source and queue pair
        self._unfinished = 0
        self._control: deque[Frame] = deque()
        self._ready: deque[FlowSender] = deque()  # flows that may have something to send
        self._timers: list[tuple[int, int, FlowSender | FlowReceiver]] = []
        self._timer_number = 0
        self._now_ns = 0

    def add_flow(self, flow: FlowSpec) -> None:
        """Sends a flow from its start time on.

        Raises:
            ConfigError: it is not this NIC's, or cannot be told from another one.
        """
        dst = ip_number(flow.dst)
        neighbours = self._senders_to.setdefault(dst, [])
        if flow.src != self.ip:
            raise ConfigError(f"flow {flow.id}: its source {flow.src} is not this host, {self.ip}")
        if (dst, flow.qpn) in self._senders:
            raise ConfigError(f"flow {flow.id}: queue pair {flow.qpn} to {flow.dst} is taken")
        if self._min_rtt and any(other.flow.sport == flow.sport for other in neighbours):
            raise ConfigError(f"flow {flow.id}: source port {flow.sport} to {flow.dst} is taken")
        sender = FlowSender(flow, self.config, self._address(flow.dst), self._min_rtt, self._rng)
        self._senders[dst, flow.qpn] = sender
        neighbours.append(sender)
        self._unfinished += 1
        self._arm(sender)

    def expect_flow(self, flow: FlowSpec) -> None:
        """Prepares to receive a flow.

        Raises:
            ConfigError: it is not for this NIC, or cannot be told from another one.
        """
        src = ip_number(flow.src)
        if flow.dst != self.ip:
            raise ConfigError(f"flow {flow.id}: its destination {flow.dst} is not this host, {self.ip}")
        if (src, flow.qpn) in self._receivers:
            raise ConfigError(f"flow {flow.id}: queue pair {flow.qpn} from {flow.src} is taken")
        self._receivers[src, flow.qpn] = FlowReceiver(flow, self.config, self._address(flow.src))
        self._unfinished += 1

    def _address(self, peer: str) -> Address:
        return Address(self.mac, self._gateway_mac, self.ip, peer)

    @property
    def idle(self) -> bool:
        """Whether every flow that is sent has been acknowledged, and every expected one has arrived."""
        return self._unfinished == 0

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
        """A frame came off the link; never raises, whatever it is.

        Args:
            now_ns: not before any earlier call's.
            virtual_bytes: length of the payload that is only counted.
        """
        self._now_ns = now_ns
        parsed = parse(frame, virtual_bytes)
        if isinstance(parsed, Junk):
            self.counters[parsed.value] += 1
        elif isinstance(parsed, Pfc):
            self._pfc.on_pfc(now_ns, parsed.quanta)
        elif isinstance(parsed, Pause):
            self._on_pause(now_ns, parsed)
        elif parsed.dst != self._ip:
            self.counters["not_ours"] += 1
        elif not self._on_addressed(now_ns, parsed):
            self.counters["unexpected"] += 1

    def _on_addressed(self, now_ns: int, parsed: Data | Ack | Cnp | NicAcked) -> bool:
        """Whether there is a flow for this packet."""
        if isinstance(parsed, Data):
            receiver = self._receivers.get((parsed.src, parsed.qpn))
            return receiver is not None and self._on_data(now_ns, receiver, parsed)
        if isinstance(parsed, NicAcked):
            for sender in self._senders_to.get(parsed.src, ()):
                if sender.flow.sport == parsed.orig_sport:
                    sender.on_nic_ack(now_ns, parsed)
                    self._wake(sender)
                    return True
            return False
        found = self._senders.get((parsed.src, parsed.qpn))
        if found is None:
            return False
        if isinstance(parsed, Ack):
            unfinished = not found.done
            found.on_ack(now_ns, parsed)
            self._unfinished -= unfinished and found.done
            self._wake(found)
        else:
            found.on_cnp()
        return True

    def _on_data(self, now_ns: int, receiver: FlowReceiver, data: Data) -> bool:
        if not receiver.fits(data):
            return False
        self._send(receiver.nic_ack(data))
        unfinished = not receiver.done
        self._send(receiver.on_data(now_ns, data))
        self._unfinished -= unfinished and receiver.done
        self._arm(receiver)
        return True

    def _on_pause(self, now_ns: int, pause: Pause) -> None:
        found = [sender for sender in self._senders_to.get(pause.key[1], ()) if sender.has_key(pause.key)]
        for sender in found:
            sender.on_pause(now_ns, pause)
            self._wake(sender)
        self.counters["unexpected"] += not found

    def next_frame(self, now_ns: int) -> Frame | None:
        """The frame to send now that the link is free; None: nothing may be sent."""
        self._now_ns = now_ns
        self._run_timers(now_ns)
        if self._control and self._pfc.until_ns(self.config.control_priority) <= now_ns:
            return self._control.popleft()
        if self._pfc.until_ns(self.config.data_priority) > now_ns:
            return None
        ready = self._ready
        while ready:
            sender = ready.popleft()
            frame = sender.next_frame(now_ns)
            if frame is not None:
                ready.append(sender)
                self._arm(sender)
                return frame
            sender.queued = False
            self._arm(sender)
        return None

    def next_time_ns(self, now_ns: int) -> int | None:
        """The earliest time, now or later, when `next_frame` may have something; None: after `on_frame`."""
        timers = self._timers
        while timers and timers[0][2].timer_ns != timers[0][0]:
            heapq.heappop(timers)
        time_ns = timers[0][0] if timers else None
        for waiting, priority in (
            (self._control, self.config.control_priority),
            (self._ready, self.config.data_priority),
        ):
            if waiting:
                until_ns = self._pfc.until_ns(priority)
                time_ns = until_ns if time_ns is None else min(time_ns, until_ns)
        return time_ns if time_ns is None else max(now_ns, time_ns)

    def records(self) -> list[Observation]:
        """What has been seen of every flow, at this end of it."""
        senders = [sender.observation(self._now_ns) for sender in self._senders.values()]
        return [*senders, *(receiver.observation() for receiver in self._receivers.values())]

    @staticmethod
    def merge(*nics: Nic) -> list[FlowRecord]:
        """One record for each flow that these NICs send."""
        return merge(observation for nic in nics for observation in nic.records())

    def _send(self, frame: Frame | None) -> None:
        if frame is not None:
            self._control.append(frame)

    def _wake(self, sender: FlowSender) -> None:
        """Something happened to a flow: it may have something to send, and its timer may have changed."""
        if sender.started and not sender.queued and not sender.done:
            sender.queued = True
            self._ready.append(sender)
        self._arm(sender)

    def _arm(self, owner: FlowSender | FlowReceiver) -> None:
        """Sets a flow's timer, unless it rings early enough: then it is set again when it rings."""
        deadline_ns = owner.deadline_ns()
        if deadline_ns is not None and (owner.timer_ns is None or deadline_ns < owner.timer_ns):
            owner.timer_ns = deadline_ns
            self._timer_number += 1
            heapq.heappush(self._timers, (deadline_ns, self._timer_number, owner))

    def _run_timers(self, now_ns: int) -> None:
        timers = self._timers
        while timers and timers[0][0] <= now_ns:
            time_ns, _, owner = heapq.heappop(timers)
            if owner.timer_ns != time_ns:
                continue
            owner.timer_ns = None
            if isinstance(owner, FlowSender):
                owner.on_time(now_ns)
                self._wake(owner)
            else:
                self._send(owner.on_time(now_ns))
                self._arm(owner)


__all__ = ["FlowRecord", "FlowSpec", "FlowcutNicConfig", "Frame", "Nic", "NicConfig", "Parsed"]
