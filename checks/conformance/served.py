# SPDX-License-Identifier: Apache-2.0
"""A switch under test behind its P4Runtime server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

from checks.conformance.p4rt import PrimaryClient
from checks.conformance.packets import Packet
from tailrace.bmv2.dataplane import Outputs

_T = TypeVar("_T", bound="Served")


class Served(ABC):
    """A context, within which `client` is the primary; `stop` ends all that the switch has started."""

    client: PrimaryClient

    def __enter__(self: _T) -> _T:
        try:
            self.client.become_primary()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.client.__exit__()
        self.stop()

    @abstractmethod
    def stop(self) -> None:
        """Stops the switch."""

    @abstractmethod
    def send(self, packet: Packet) -> Outputs:
        """What a packet causes, as (port, bytes). Raises ConformanceError when it never comes to rest."""
