# SPDX-License-Identifier: Apache-2.0
"""One switch with a program that does PFC by itself, in this process and in virtual time; a tick is a nanosecond.

What came in by a port is told by a number in the PSN, so that order and loss show in what leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from scapy.layers.l2 import Ether
from scapy.packet import Packet

from tailrace.codec.layers.bth import BTH
from tailrace.codec.layers.pfc import pfc_frame
from tailrace.codec.numbers import MAC_CONTROL_TYPE, Opcode
from tailrace.schemes.blocks.pfc import leak
from tailrace.spec.watchdog import NO_WATCHDOG, Watchdog
from tailrace.switch.core import Replica, SentFrame
from tests.p4src.frames import roce
from tests.p4src.rig import DOWNLINK, HOST, HOST_PORT, REMOTE, UPLINKS, Rig, enum_of, number

RATE_BPS = 100_000_000
QUANTUM_NS = 5120  # 512 bits at RATE_BPS
PORTS = (HOST_PORT, 1, DOWNLINK, *UPLINKS)
FOREVER = 1 << 31
NEIGHBOUR = "02:00:00:00:00:09"
STATION = "02:00:00:00:00:fe"
PAYLOAD = bytes(500)
ROOM = 400
_ONE = 1 << 16


class PfcRig:
    """The switch, whose ports all have RATE_BPS. It pauses nobody, unless thresholds are given.

    rated: the ports whose pauses it obeys; watchdog: of all of them
    """

    def __init__(
        self,
        name: str,
        *,
        rated: tuple[int, ...] = PORTS,
        kind: type[Rig] = Rig,
        watchdog: Watchdog = NO_WATCHDOG,
        **config: int,
    ) -> None:
        # what goes round has a rate, or a packet that waits would do so at one moment for ever
        self.rig = kind(name, recirc_rate_bps=20 * RATE_BPS)
        self.outputs: list[SentFrame] = []
        self.rig.switch.clone_set(number("pause_session"), [Replica(number("pause_port"))])
        usual = {"xoff_bytes": FOREVER, "xon_bytes": FOREVER, "quanta": 0xFFFF, "refresh_ticks": FOREVER}
        usual |= {"room": ROOM, "patience_ticks": FOREVER, "station": int(STATION.replace(":", ""), 16)}
        self.rig.default("pfc_config", **usual | config)
        for port in rated:
            self.watch(port, watchdog)
        for port in PORTS:
            self.rig.switch.port_config(port, rate_bps=RATE_BPS)

    def __enter__(self) -> PfcRig:
        return self

    def __exit__(self, *_: object) -> None:
        self.rig.switch.close()

    def watch(self, port: int, watchdog: Watchdog) -> None:
        """Pauses of a port are obeyed, and watched."""
        values = {
            "quantum": QUANTUM_NS * _ONE,
            "detect_ticks": watchdog.detect_ns,
            "restore_ticks": watchdog.restore_ns,
            "leak": leak(watchdog.share),
            "storm": enum_of("ecmp", "Storm_t", watchdog.action.upper()),
        }
        self.rig.insert("pfc_ports", (port,), "pause_unit", **values)

    def inject(self, port: int, frame: Packet, at_ns: int) -> None:
        """A frame comes in; what is due before has happened."""
        self.run(at_ns)
        self.rig.switch.inject(port, bytes(frame), at_ns)

    def run(self, until_ns: int) -> None:
        """Lets time pass."""
        self.rig.switch.run(until_ns)
        self.outputs += self.rig.switch.outputs()

    def pause(self, port: int, quanta: int, at_ns: int) -> None:
        """The other end of a port asks for a pause of data; 0: it may go on."""
        self.inject(port, pfc_frame(NEIGHBOUR, {0: quanta}), at_ns)

    def sent(self, port: int) -> list[tuple[int, int]]:
        """Data that left a port: when its first bit did, and its number."""
        departures = []
        for output in self.outputs:
            if output.port == port and (frame := Ether(output.data)).type != MAC_CONTROL_TYPE:
                began = output.time_ns - len(output.data) * 8 * 10**9 // RATE_BPS
                departures.append((began, int(frame[BTH].psn)))
        return departures

    def asked(self, port: int) -> list[tuple[int, int]]:
        """Pause frames that left a port: when its last bit had, and quanta."""
        port_outputs = [output for output in self.outputs if output.port == port]
        frames = [(output.time_ns, Ether(output.data)) for output in port_outputs]
        return [(at, int(frame.c0_pause_time)) for at, frame in frames if frame.type == MAC_CONTROL_TYPE]

    def is_empty(self) -> bool:
        """Whether nothing is left of any packet: in no account, nor among those that may wait."""
        inner = (number("mirror_port"), number("waiting_port"), number("pause_port"))
        loads = [(self.rig.load(port), self.rig.source_load(port)) for port in (*PORTS, *inner)]
        issued, left = self.rig.register("pfc_all_issued"), self.rig.register("pfc_all_left")
        account = self.rig.switch.account()
        return not any(map(any, loads)) and issued == left and account.balanced and account.held_frames == 0


def data(number_of: int, dst: str = HOST) -> Packet:
    """A packet for a host, from behind the uplinks."""
    return roce(src=REMOTE, dst=dst, psn=number_of, payload=PAYLOAD)


def control(number_of: int) -> Packet:
    """A packet for the same host that goes before data."""
    return roce(src=REMOTE, dst=HOST, psn=number_of, opcode=int(Opcode.ACK))


@dataclass
class Model:
    """When a port is closed, by the pauses that were asked for: 802.1Qbb's timer, which each frame sets anew."""

    pauses: list[tuple[int, int]] = field(default_factory=list)  # when a frame came, and until when it closes

    def pause(self, quanta: int, at_ns: int) -> None:
        """A frame for data came."""
        self.pauses.append((at_ns, at_ns + quanta * QUANTUM_NS))

    def closed(self) -> list[tuple[int, int]]:
        """Times from frame to frame, as long as each of them lasted."""
        ends = [*(at_ns for at_ns, _ in self.pauses[1:]), 1 << 62]
        return [(begin, min(end, after)) for (begin, end), after in zip(self.pauses, ends, strict=False)]
