# SPDX-License-Identifier: Apache-2.0
"""Reliable transports: what is sent, what is sent again, and what a receiver takes and answers."""

from __future__ import annotations

import random

from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.transport.base import Receiver, Sender
from tailrace.hosts.transport.dcqcn.transport import DcqcnSender
from tailrace.hosts.transport.dctcp import DctcpReceiver, DctcpSender
from tailrace.hosts.transport.go_back_n import GoBackNReceiver, GoBackNSender
from tailrace.hosts.transport.mp_rdma import MpRdmaReceiver, MpRdmaSender
from tailrace.hosts.transport.selective_repeat import SelectiveRepeatReceiver, SelectiveRepeatSender
from tailrace.hosts.transport.tcp.transport import TcpReceiver, TcpSender


def make_sender(packets: int, config: NicConfig, sport: int, rng: random.Random) -> Sender:
    """The sending side of a flow.

    Args:
        packets: length of the flow, 1 or more.
        sport: the flow's own UDP source port.
        rng: chooses other ones (MP-RDMA §3).
    """
    if config.transport == "mp-rdma":
        return MpRdmaSender(packets, config, sport, rng)
    if config.transport == "dctcp":
        return DctcpSender(packets, config, sport)
    if config.transport == "sr":
        return SelectiveRepeatSender(packets, config, sport)
    if config.transport == "dcqcn":
        return DcqcnSender(packets, config, sport)
    if config.transport == "tcp":
        return TcpSender(packets, config, sport)
    return GoBackNSender(packets, config, sport)


def make_receiver(packets: int, config: NicConfig) -> Receiver:
    """The receiving side of a flow; packets: its length, 1 or more."""
    if config.transport == "mp-rdma":
        return MpRdmaReceiver(packets, config)
    if config.transport == "dctcp":
        return DctcpReceiver(packets, config)
    if config.transport == "sr":
        return SelectiveRepeatReceiver(packets, config)
    if config.transport == "tcp":
        return TcpReceiver(packets, config)
    return GoBackNReceiver(packets, config)


__all__ = ["Receiver", "Sender", "make_receiver", "make_sender"]
