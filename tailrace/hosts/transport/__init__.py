# SPDX-License-Identifier: Apache-2.0
"""Transports: transmission, retransmission, and the responses of receivers."""

from __future__ import annotations

import random
from collections.abc import Callable

from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.options.transports import Dcqcn, Dctcp, GoBackN, MpRdma, SelectiveRepeat, Tcp, Udp
from tailrace.hosts.transport.base import Receiver, Sender
from tailrace.hosts.transport.dcqcn.transport import DcqcnSender
from tailrace.hosts.transport.dctcp import DctcpReceiver, DctcpSender
from tailrace.hosts.transport.go_back_n import GoBackNReceiver, GoBackNSender
from tailrace.hosts.transport.mp_rdma import MpRdmaReceiver, MpRdmaSender
from tailrace.hosts.transport.selective_repeat import SelectiveRepeatReceiver, SelectiveRepeatSender
from tailrace.hosts.transport.tcp.transport import TcpReceiver, TcpSender
from tailrace.hosts.transport.udp import UdpReceiver, UdpSender

MakeSender = Callable[[int, NicConfig, int, random.Random], Sender]
MakeReceiver = Callable[[int, NicConfig], Receiver]


def _without_rng(kind: Callable[[int, NicConfig, int], Sender]) -> MakeSender:
    """Adapts a class whose senders need no random numbers."""
    return lambda packets, config, sport, rng: kind(packets, config, sport)  # noqa: ARG005


ENDS: dict[str, tuple[MakeSender, MakeReceiver]] = {
    GoBackN.name: (_without_rng(GoBackNSender), GoBackNReceiver),
    SelectiveRepeat.name: (_without_rng(SelectiveRepeatSender), SelectiveRepeatReceiver),
    MpRdma.name: (MpRdmaSender, MpRdmaReceiver),
    Dctcp.name: (_without_rng(DctcpSender), DctcpReceiver),
    Dcqcn.name: (_without_rng(DcqcnSender), GoBackNReceiver),
    Tcp.name: (_without_rng(TcpSender), TcpReceiver),
    Udp.name: (_without_rng(UdpSender), UdpReceiver),
}
"""Sender and receiver by transport; hosts.extend adds the transports of plug-ins."""


def make_sender(packets: int, config: NicConfig, sport: int, rng: random.Random) -> Sender:
    """The sending side of a flow.

    Args:
        packets: length of the flow in packets, 1 or more.
        sport: the flow's original UDP source port.
        rng: chooses other source ports (MP-RDMA §3).
    """
    return ENDS[config.transport][0](packets, config, sport, rng)


def make_receiver(packets: int, config: NicConfig) -> Receiver:
    """The receiving side of a flow; packets: the flow's length in packets, 1 or more."""
    return ENDS[config.transport][1](packets, config)


__all__ = ["ENDS", "Receiver", "Sender", "make_receiver", "make_sender"]
