# SPDX-License-Identifier: Apache-2.0
"""Switches within the process, such as those of the virtual network: calls take no time.

For example, `install_all(network.p4rt, intent(topology, scheme, target))` writes the intended entities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from tailrace.p4rt import digests
from tailrace.p4rt.digests import DigestMessage
from tailrace.p4rt.errors import ReadError, RefusedError, WriteError
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.status import P4RtError


class EntityUpdate(NamedTuple):
    """Stands for a p4.v1.Update, without copying the entity."""

    entity: p4r.Entity
    type: p4r.Update.Type.ValueType = p4r.Update.INSERT


class InProcessSwitch(Protocol):
    """P4Runtime of a switch as function calls, which raise P4RtError (sim.network.endpoint.Endpoint)."""

    name: str

    def write(self, request: p4r.WriteRequest, updates: Sequence[p4r.Update | EntityUpdate]) -> None:
        """Executes a Write of these updates."""
        ...

    def read(self, request: p4r.ReadRequest) -> Iterator[p4r.ReadResponse]:
        """Executes a Read."""
        ...

    def push(self, program: P4Program) -> None:
        """Executes the SetForwardingPipelineConfig of a program."""
        ...

    def digest_lists(self) -> list[p4r.DigestList]:
        """Returns the queued digest lists, and empties the queue."""
        ...

    def acknowledge(self, message: p4r.DigestListAck) -> None:
        """Acknowledges a digest list."""
        ...

    def pipeline(self, response_type: int, /) -> p4r.GetForwardingPipelineConfigResponse:
        """Executes a GetForwardingPipelineConfig."""
        ...


class InProcess:
    """The endpoint of an in-process switch. Its coroutines never suspend, so `run_at_once` can run them."""

    def __init__(self, switch: InProcessSwitch) -> None:
        self._switch = switch

    @property
    def name(self) -> str:
        """The switch's name."""
        return self._switch.name

    async def read(self, entities: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        try:
            responses = self._switch.read(p4r.ReadRequest(entities=entities))
            return [entity for response in responses for entity in response.entities]
        except P4RtError as error:
            raise ReadError(self.name, str(error), error.code.name) from error

    async def write(self, updates: Sequence[p4r.Update | EntityUpdate]) -> None:
        try:
            self._switch.write(p4r.WriteRequest(), updates)
        except P4RtError as error:
            failures = {i: f"{each.code.name}: {each}" for i, each in enumerate(error.results) if each}
            raise WriteError(self.name, str(error), error.code.name, failures) from error

    def digests(self, program: P4Program) -> list[DigestMessage]:
        """Returns and acknowledges the queued digests; `program`: the switch's program.

        Raises:
            SwitchError: the switch rejects a call.
        """
        received = []
        try:
            for message in self._switch.digest_lists():
                received += digests.decode(program, self.name, message)
                self._switch.acknowledge(digests.acknowledgement(message))
        except P4RtError as error:
            raise RefusedError(self.name, str(error), error.code.name) from error
        return received

    async def cookie(self) -> int | None:
        response = self._switch.pipeline(p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY)
        return response.config.cookie.cookie if response.config.HasField("cookie") else None

    async def push(self, program: P4Program) -> None:
        try:
            self._switch.push(program)
        except P4RtError as error:
            # the cause says more, which is withheld from remote clients
            text = f"program {program.name} was refused: {error.__cause__ or error}"
            raise RefusedError(self.name, text, error.code.name) from error
