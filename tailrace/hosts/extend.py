# SPDX-License-Identifier: Apache-2.0
"""What a file from outside needs that adds a transport, or a way to choose paths in NICs (docs/extend.md).

They are plain Python, called for each packet, on every target; the NICs' own algorithms stay compiled. The
classes here may be built on; other compiled ones may not be inherited.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tailrace.codec.calls import NEVER
from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import ALGORITHMS, ANY, NicConfig, SteeringConfig
from tailrace.hosts.options.transport import Transport
from tailrace.hosts.options.transport import transport as declare
from tailrace.hosts.steering.assign import MAKERS, Make
from tailrace.hosts.steering.base import ACK, ACK_ECN, NACK, TIMEOUT, Steering
from tailrace.hosts.transport import ENDS, MakeReceiver, MakeSender
from tailrace.hosts.transport.base import NOTHING, OneTimerSender, Receiver, Sender
from tailrace.hosts.transport.go_back_n import GoBackNReceiver, GoBackNSender
from tailrace.hosts.transport.selective_repeat import SelectiveRepeatReceiver, SelectiveRepeatSender
from tailrace.words import SpecError, keys
from tailrace.words.registry import check_name

T = TypeVar("T", bound=type[Transport])
M = TypeVar("M", bound=Make)


def transport(sender: MakeSender, receiver: MakeReceiver) -> Callable[[T], T]:
    """Registers a transport; a decorator of the struct of its keys.

    Args:
        sender: makes the sending side of a flow, of (packets, NicConfig, source port, random numbers).
        receiver: the receiving side, of (packets, NicConfig). Both find the keys' values in NicConfig.own.
    """

    def add(kind: T) -> T:
        declare(kind)
        ENDS[kind.name] = (sender, receiver)
        return kind

    return add


def steering(name: str) -> Callable[[M], M]:
    """Registers a way to choose the paths of a flow's packets; a decorator of what makes it for one flow.

    That is called with (SteeringConfig, PathList, hash of the flow's 5-tuple, random numbers).

    Raises:
        SpecError: it is no name, or something else has it.
    """
    check_name("steering", name)
    if name in ALGORITHMS:
        raise SpecError(f"steering {name!r} is registered twice")

    def add(make: M) -> M:
        ALGORITHMS[name] = ANY
        MAKERS[name] = make
        return make

    return add


__all__ = [
    "ACK",
    "ACK_ECN",
    "NACK",
    "NEVER",
    "NOTHING",
    "TIMEOUT",
    "GoBackNReceiver",
    "GoBackNSender",
    "NicConfig",
    "OneTimerSender",
    "PathList",
    "Receiver",
    "SelectiveRepeatReceiver",
    "SelectiveRepeatSender",
    "Sender",
    "SpecError",
    "Steering",
    "SteeringConfig",
    "Transport",
    "keys",
    "steering",
    "transport",
]
