# SPDX-License-Identifier: Apache-2.0
"""The base class of transports' declarations: their keys, and the NIC settings that follow from the keys."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import msgspec

from tailrace.spec.registry import Registry


class Transport(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a transport in a spec. Times are at full speed, even if a real-time run is slower.

    about: one line that describes the transport.
    windowless: a rate or a congestion window limits flows, so by default NicConfig.window_bytes is 0.
    in_order: receivers discard packets beyond the expected packet.
    lossless: the transport is made for networks that lose no packets, so experiments use PFC by default.
    led_by_marks: ECN marks control the window, so queues mark packets by default.
    chooses_paths: the transport chooses source ports itself, so steering and Flowcut on the NIC must not.
    acks_each: receivers acknowledge each packet, so `ack_every` must be 1.
    unreliable: lost packets are not sent again, and receivers send no ACKs.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    windowless: ClassVar[bool] = False
    in_order: ClassVar[bool] = False
    lossless: ClassVar[bool] = False
    led_by_marks: ClassVar[bool] = False
    chooses_paths: ClassVar[bool] = False
    acks_each: ClassVar[bool] = False
    unreliable: ClassVar[bool] = False

    @property
    def loss_driven_burst_bytes(self) -> int | None:
        """The longest burst, in bytes of payload, if the transport shrinks its window after losses. Such a
        sender needs short queues. None: losses do not control the window.
        """
        return None

    def settings(self) -> dict[str, Any]:
        """The NicConfig fields that the keys determine; by default the field `parameters` with all keys."""
        parameters = msgspec.to_builtins(self)
        return {"parameters": parameters} if parameters else {}


T = TypeVar("T", bound=type[Transport])

TRANSPORTS: Registry[Transport] = Registry("transport")


def transport(kind: T) -> T:
    """Registers a transport; a decorator of the struct of its keys."""
    return TRANSPORTS.register(kind.name, kind.about)(kind)
