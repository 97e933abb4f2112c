# SPDX-License-Identifier: Apache-2.0
"""The P4Runtime session of one switch: arbitration, pipeline, entries, reconnection.

    connect --> announce --> primary --> push the program unless it is there --> reconcile --> ready
       ^                        |                                                    ^           |
       |                     backup: wait until there is no primary                  +-- intent -+
       +---------------- the switch or the stream goes away; wait, longer each time

A backup changes nothing. When the primary goes away, the backup announces the highest election id that the
switch has seen, and so becomes primary itself (P4Runtime §5.3, §5.4); BMv2 promotes a backup by itself. If a
primary loses some connections for a while, two controllers are then each primary of a part of the network,
and neither sees the links between the parts. One of them (controller.py says which) then claims the switches
of the other, with an election id above the highest.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import Enum

from tailrace.controller.reconcile import ReconcileReport, install, read_all
from tailrace.controller.timing import Timing
from tailrace.p4rt import digests, programs
from tailrace.p4rt.channel import SwitchAddress
from tailrace.p4rt.client import Client, connect
from tailrace.p4rt.digests import DigestMessage
from tailrace.p4rt.errors import ElectionError, SwitchError, UnreachableError
from tailrace.p4rt.intent import SwitchIntent
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.packet_io import packet_in_fields, packet_out_metadata
from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.requests import election_of
from tailrace.p4rt.status import Code

DEFAULT_ELECTION_ID = 1000
"""The election id announced first. A controller whose id is taken tries the next lower id, down to 1."""


Connect = Callable[..., AbstractAsyncContextManager[Client]]
"""p4rt.client.connect, or the same with some arguments given."""


@functools.lru_cache(maxsize=4096)  # every round of probes needs the same headers
def packet_out_header(program: P4Program, op: str, index: int) -> list[p4r.PacketMetadata]:
    """The metadata of a packet-out with an operation of PacketOutOp_t."""
    return packet_out_metadata(program.p4info, {"op": program.enum("PacketOutOp_t", op), "index": index})


class SessionState(Enum):
    """Not connected, backup, primary, or READY: primary of a switch that has all that it should have (its
    intent).
    """

    LOST = "lost"
    BACKUP = "backup"
    PRIMARY = "primary"
    READY = "ready"


@dataclass(frozen=True, slots=True)
class Hooks:
    """Callbacks of a session to its owner, in the event loop.

    state: the session, after its state changed, or its switch was reconciled again (still READY)
    packet: switch name, and header fields and payload of a packet-in
    digest: a message of the data plane, which is acknowledged afterwards
    links_discovered: a session; awaited before the entries of its switch, which already runs the program,
        are first changed
    state_read: switch name and the entities of a switch that already runs the program, if the program has
        digests: the entities show how an earlier controller reacted to digests
    """

    state: Callable[[Session], None]
    packet: Callable[[str, dict[str, int], bytes], None]
    digest: Callable[[DigestMessage], None]
    links_discovered: Callable[[Session], Awaitable[None]]
    state_read: Callable[[str, list[p4r.Entity]], None]


class Session:
    """The controller's side of one switch.

    report: what the last reconciliation wrote; pushed: whether it pushed the program
    carries: the switch has entries, perhaps of an earlier controller, so it sends and reports link probes
    """

    def __init__(
        self,
        name: str,
        address: SwitchAddress,
        hooks: Hooks,
        *,
        election_id: int = DEFAULT_ELECTION_ID,
        timing: Timing | None = None,
        connect: Connect = connect,
    ) -> None:
        self.name = name
        self.address = address
        self.state = SessionState.LOST
        self.error: SwitchError | None = None
        self.report = ReconcileReport()
        self.pushed = False
        self.carries = False
        self._hooks = hooks
        self._election_id = election_id
        self._highest = election_id  # of all election ids seen at the switch
        self._timing = timing or Timing()
        self._connect = connect
        self._intent: SwitchIntent | None = None
        self._wake = asyncio.Event()
        self._client: Client | None = None
        self._program: P4Program | None = None
        self._synced = False  # whether this session has reconciled the switch
        self._terms = 0  # how often this controller has become primary

    # ---- for the owner ----

    def set_intent(self, intent: SwitchIntent) -> None:
        """Sets the entities that the switch must have from now on."""
        self._intent = intent
        if self.state is SessionState.READY:
            self._set_state(SessionState.PRIMARY)
        self._wake.set()

    def claim(self) -> None:
        """Makes this controller primary of the switch in place of the present one."""
        if self._client is not None and self.state is SessionState.BACKUP:
            self._election_id = self._highest = self._highest + 1
            with contextlib.suppress(SwitchError):  # the connection was lost just now
                self._client.announce(self._election_id)

    def packet_out(self, op: str, index: int, payload: bytes = b"") -> None:
        """Sends a packet-out with an operation of PacketOutOp_t.

        Raises:
            SwitchError: this is not the primary controller, or the connection is lost.
        """
        client, program = self._client, self._program
        if client is None or self.state in (SessionState.LOST, SessionState.BACKUP):
            why = (
                "another controller is primary"
                if self.state is SessionState.BACKUP
                else "there is no connection"
            )
            raise UnreachableError(self.name, why)
        if program is None:
            raise UnreachableError(self.name, "its program is not known yet")
        packet = p4r.PacketOut(payload=payload, metadata=packet_out_header(program, op, index))
        client.send(p4r.StreamMessageRequest(packet=packet))

    async def run(self) -> None:
        """Runs until cancelled.

        Raises:
            ControllerError: a failure that retries cannot repair, such as unreadable TLS files.
        """
        clock = asyncio.get_running_loop().time
        lost_at_s = clock()
        while True:
            try:
                async with self._connect(
                    self.name, self.address, call_s=self._timing.call_s, push_s=self._timing.push_s
                ) as client:
                    self._client = client
                    client.announce(self._election_id)
                    await self._serve(client)
            except ElectionError as error:
                self.error = error
                self._election_id = max(1, self._election_id - 1)
            except SwitchError as error:
                self.error = error
            finally:
                if self.state in (SessionState.READY, SessionState.BACKUP):
                    lost_at_s = clock()
                self._client = None
                self.carries = False
                self._set_state(SessionState.LOST)
            await asyncio.sleep(self._timing.retry_s(clock() - lost_at_s))

    # ---- private ----

    def _set_state(self, state: SessionState) -> None:
        if state is not self.state or state is SessionState.READY:
            self.state = state
            self._hooks.state(self)

    async def _serve(self, client: Client) -> None:
        """Receives and reconciles until either fails."""
        tasks = asyncio.create_task(self._receive(client)), asyncio.create_task(self._work(client))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            done = [task for task in tasks if task.done()]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            with contextlib.suppress(asyncio.CancelledError):
                task.result()

    async def _receive(self, client: Client) -> None:
        while True:
            message = await client.receive()
            if message.HasField("arbitration"):
                self._arbitrated(client, message.arbitration)
            elif message.HasField("packet") and self._program is not None:
                fields = packet_in_fields(self._program.p4info, message.packet)
                self._hooks.packet(self.name, fields, message.packet.payload)
            elif message.HasField("digest") and self._program is not None:
                for digest in digests.decode(self._program, self.name, message.digest):
                    self._hooks.digest(digest)
                client.send(p4r.StreamMessageRequest(digest_ack=digests.acknowledgement(message.digest)))

    def _arbitrated(self, client: Client, update: p4r.MasterArbitrationUpdate) -> None:
        code = update.status.code
        self._highest = max(self._highest, election_of(update.election_id))
        if code == Code.OK:
            if self.state in (SessionState.LOST, SessionState.BACKUP):
                self._terms += 1
                self._set_state(SessionState.PRIMARY)
            self._wake.set()
        elif code == Code.NOT_FOUND:  # there is no primary
            self._set_state(SessionState.BACKUP)
            self._election_id = self._highest
            client.announce(self._election_id)
        else:
            self._set_state(SessionState.BACKUP)

    async def _work(self, client: Client) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self.state is not SessionState.PRIMARY or self._intent is None:
                continue
            program = self._program = programs.load(self._intent.program)
            if not self._synced and await client.cookie() == program.cookie:
                self.carries = True
                await self._hooks.links_discovered(self)
                if program.p4info.digests:
                    self._hooks.state_read(self.name, await read_all(client, program))
            wanted = self._intent
            term = self._terms
            self.pushed, self.report = await install(client, program, wanted.entities)
            self._synced = self.carries = True
            # if another controller was primary meanwhile, it may have changed entities after they were read
            if self._terms == term and self._intent is wanted and self.state is SessionState.PRIMARY:
                self.error = None
                self._set_state(SessionState.READY)
            else:
                self._wake.set()
