# SPDX-License-Identifier: Apache-2.0
"""How the control plane reaches one switch, over gRPC or within the process."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from finsy.proto import p4r

from tailrace.p4rt.programs import P4Program

_T = TypeVar("_T")


class Readable(Protocol):
    """A switch that can be read, which needs no election."""

    @property
    def name(self) -> str:
        """The switch's name, for messages."""
        ...

    async def read(self, entities: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        """The entities that match the patterns.

        Raises:
            SwitchError: the read was refused, or the switch is gone.
        """
        ...


class Endpoint(Readable, Protocol):
    """P4Runtime of one switch, of which the caller is the primary controller where it writes."""

    async def write(self, updates: Sequence[p4r.Update]) -> None:
        """Carries out the updates; those that can be are carried out even where others cannot.

        Raises:
            WriteError: some were refused.
            SwitchError: the switch is gone.
        """
        ...

    async def cookie(self) -> int | None:
        """What identifies the pipeline that the switch runs; None where it runs none.

        Raises:
            SwitchError: the switch is gone.
        """
        ...

    async def push(self, program: P4Program) -> None:
        """Makes the switch run a program, with empty tables.

        Raises:
            SwitchError: it was refused, or the switch is gone.
        """
        ...


def run_at_once(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """The result of a coroutine that never waits, such as anything over an endpoint within the process."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: _T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("the coroutine waits for something")
