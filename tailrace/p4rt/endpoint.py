# SPDX-License-Identifier: Apache-2.0
"""The control plane's interface to one switch, over gRPC or within the process."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from tailrace.p4rt.errors import WriteError
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.programs import P4Program

BATCH = 500
"""Maximum number of updates in a Write; simple_switch_grpc limits messages to 4 MiB."""

_T = TypeVar("_T")


class Readable(Protocol):
    """A switch that can be read, without an election."""

    @property
    def name(self) -> str:
        """The switch's name, for messages."""
        ...

    async def read(self, entities: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        """The entities of the switch that match `entities`, which are patterns as in a ReadRequest.

        Raises:
            SwitchError: the read was rejected, or the switch is unreachable.
        """
        ...


class Endpoint(Readable, Protocol):
    """P4Runtime of one switch; a caller that writes must be the primary controller."""

    async def write(self, updates: Sequence[p4r.Update]) -> None:
        """Writes the updates; valid updates are written even if other updates are rejected.

        Raises:
            WriteError: updates were rejected.
            SwitchError: the switch is unreachable.
        """
        ...

    async def cookie(self) -> int | None:
        """The cookie of the switch's pipeline; None: the switch runs no program.

        Raises:
            SwitchError: the switch is unreachable.
        """
        ...

    async def push(self, program: P4Program) -> None:
        """Makes the switch run a program, with empty tables.

        Raises:
            SwitchError: the program was rejected, or the switch is unreachable.
        """
        ...


async def write_all(endpoint: Endpoint, updates: Sequence[p4r.Update]) -> None:
    """Writes any number of updates in order.

    Raises:
        WriteError: the updates in `failures` were rejected; all other updates are written.
        SwitchError: a batch failed; its updates and all later updates were not written.
    """
    failures: dict[int, str] = {}
    for first in range(0, len(updates), BATCH):
        batch = updates[first : first + BATCH]
        try:
            await endpoint.write(batch)
        except WriteError as error:
            if not error.failures:
                raise
            if max(error.failures) >= len(batch):
                problem = f"{error.problem}; the response has more errors than the request has updates"
                raise WriteError(endpoint.name, problem, error.code) from error
            failures |= {first + index: why for index, why in error.failures.items()}
    if failures:
        raise WriteError(endpoint.name, f"{len(failures)} updates were refused", failures=failures)


def run_at_once(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """The result of a coroutine that never suspends, such as a call of InProcess; needs no event loop."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: _T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("the coroutine waits for something")
