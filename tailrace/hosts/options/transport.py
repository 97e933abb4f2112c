# SPDX-License-Identifier: Apache-2.0
"""What every transport is: keys as they are written, and what they come to among the settings of a NIC."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import msgspec

from tailrace.spec.registry import Registry


class Transport(msgspec.Struct, frozen=True, kw_only=True):
    """A transport as it was given, at full speed.

    about: one line on what it does
    windowless: something else than a window holds flows back, so they have none unless one is given
    in_order: receivers keep nothing beyond the packet that they expect
    chooses_paths: by source ports of its own, so that nothing else may
    acks_each: receivers acknowledge each packet, so that `ack_every` is 1
    """

    name: ClassVar[str]
    about: ClassVar[str]
    windowless: ClassVar[bool] = False
    in_order: ClassVar[bool] = False
    chooses_paths: ClassVar[bool] = False
    acks_each: ClassVar[bool] = False

    @property
    def led_by_losses_bytes(self) -> int | None:
        """The longest burst of a sender that finds its window by losses, for which queues are to be short;
        None: it does not.
        """
        return None

    def settings(self) -> dict[str, Any]:
        """Fields of NicConfig that it decides, but for its name. Of one from outside: its own, by field."""
        parameters = msgspec.to_builtins(self)
        return {"parameters": parameters} if parameters else {}


T = TypeVar("T", bound=type[Transport])

TRANSPORTS: Registry[Transport] = Registry("transport")


def transport(kind: T) -> T:
    """Registers a transport; a decorator of the struct of its keys."""
    return TRANSPORTS.register(kind.name, kind.about)(kind)
