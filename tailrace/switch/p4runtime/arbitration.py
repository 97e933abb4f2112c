# SPDX-License-Identifier: Apache-2.0
"""Client arbitration of one device, without any I/O (P4Runtime specification 5.3, 5.4 and 16.2).

The server remembers the highest election id so far of each role: for the default role for ever, for any
other role until its last stream ends. The connected client with this id is the primary, all others are
backups. When the primary disconnects, no backup is promoted: a client must send an id at least as high.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.requests import election_of, set_election
from tailrace.p4rt.status import Code, P4RtError, exhausted, invalid, not_found

DEFAULT_ROLE = ""

MAX_ROLE_STREAMS = 64
"""Most streams of one role that have sent an arbitration update."""
MAX_ROLE_BYTES = 256
"""Most bytes of a role's name."""


@dataclass(eq=False, slots=True)
class ArbitrationClient:
    """The client of one stream, a backup if it has no election id; `role` is None until its first update."""

    role: str | None = None
    election_id: int | None = None


class _Role(msgspec.Struct):
    """A role and its clients.

    `highest`: the highest election id so far. `term`: the number of the role's last takeover, that is, change
    of primary, counted over all roles; a Write that began in an earlier term is rejected.
    """

    highest: int | None = None
    primary: ArbitrationClient | None = None
    term: int = 0
    clients: list[ArbitrationClient] = msgspec.field(default_factory=list)

    def elect_live(self) -> None:
        """Makes the connected client with the highest election id primary."""
        live = {c.election_id: c for c in self.clients if c.election_id is not None}
        self.highest = max(live, default=None)
        self.primary = None if self.highest is None else live[self.highest]


Notices = list[tuple[ArbitrationClient, p4r.MasterArbitrationUpdate]]
"""Arbitration updates to send, each with the client that gets it."""


class Arbiter:
    """The primary client of each role of one device.

    `lenient` follows simple_switch_grpc: role.config is ignored; an election id is forgotten when its client
    disconnects, and the client with the next highest id is promoted; a missing election id is 0.
    """

    def __init__(self, device_id: int, *, lenient: bool = False) -> None:
        self.device_id = device_id
        self._lenient = lenient
        self._roles: dict[str, _Role] = {DEFAULT_ROLE: _Role()}
        self._terms = 0

    def update(self, client: ArbitrationClient, message: p4r.MasterArbitrationUpdate) -> Notices:
        """Handles an arbitration update of `client`; returns the notifications to send, in this order.

        Raises:
            P4RtError: the update is invalid; the stream must end with this error.
        """
        name = self._check(client, message)
        election_id = self._election_id(message)
        role = self._roles.setdefault(name, _Role())
        used = (c.election_id for c in role.clients if c is not client)
        if election_id is not None and election_id in used:
            raise invalid(f"election id {election_id} is already used by another client")
        if client.role is None:
            if len(role.clients) >= MAX_ROLE_STREAMS:
                raise exhausted(f"more than {MAX_ROLE_STREAMS} streams for a role")
            client.role = name
            role.clients.append(client)
        client.election_id = election_id
        before = role.primary
        if self._lenient:
            role.elect_live()
        elif election_id is not None and (role.highest is None or election_id >= role.highest):
            role.highest = election_id
            role.primary = client
        elif role.primary is client:
            role.primary = None
        if role.primary is client and before is not client:
            self._terms += 1
            role.term = self._terms
        if role.primary is not client and role.primary is before:  # the same primary as before
            return self._notices(name, [client])
        return self._notices(name, role.clients)

    def takes_over(self, client: ArbitrationClient, message: p4r.MasterArbitrationUpdate) -> bool:
        """Whether `update` would change the role's primary to `client`."""
        election_id = self._election_id(message)
        if election_id is None or message.device_id != self.device_id:
            return False
        role = self._roles.get(message.role.name)
        if role is None:
            return True
        if role.primary is client:
            return False
        least_id = role.highest
        if self._lenient:
            least_id = None if role.primary is None else role.primary.election_id
        return least_id is None or election_id >= least_id

    def term(self, role: str) -> int:
        """The number of the role's last takeover; 0: there was none.

        A Write continues if its client disconnects or changes its election id, and stops at a takeover.
        """
        state = self._roles.get(role)
        return 0 if state is None else state.term

    def _election_id(self, message: p4r.MasterArbitrationUpdate) -> int | None:
        given = self._lenient or message.HasField("election_id")
        return election_of(message.election_id) if given else None

    def disconnect(self, client: ArbitrationClient) -> Notices:
        """Removes a client whose stream has ended; returns the notifications to send."""
        if client.role is None:
            return []
        name, client.role = client.role, None
        role = self._roles[name]
        role.clients.remove(client)
        if not role.clients and name != DEFAULT_ROLE:
            del self._roles[name]  # bounds the memory for roles, whose names clients choose
            return []
        if role.primary is not client:
            return []
        role.primary = None
        if self._lenient:
            role.elect_live()
        return self._notices(name, role.clients)

    def is_primary(self, client: ArbitrationClient) -> bool:
        """Whether the client of this stream is the primary of its role."""
        return client.role is not None and self._roles[client.role].primary is client

    def primaries(self) -> list[ArbitrationClient]:
        """The connected primaries of all roles."""
        return [role.primary for role in self._roles.values() if role.primary is not None]

    def highest(self) -> int | None:
        """The highest election id so far of the default role; None: no client has sent one."""
        return self._roles[DEFAULT_ROLE].highest

    def no_streams(self) -> bool:
        """Whether the device has no client with a stream."""
        return not any(role.clients for role in self._roles.values())

    def authorize(self, role: str, election_id: int | None) -> None:
        """Checks a request of a unary RPC that changes the device.

        Raises:
            P4RtError: NOT_FOUND: the role is unknown; PERMISSION_DENIED: the client is not its primary.
        """
        state = self._roles.get(role)
        if state is None:
            raise not_found(f"role '{role}' is not known")
        if election_id is None or state.primary is None or state.primary.election_id != election_id:
            raise P4RtError(Code.PERMISSION_DENIED, "the client is not the primary of this role")

    def _check(self, client: ArbitrationClient, message: p4r.MasterArbitrationUpdate) -> str:
        if message.device_id != self.device_id:
            if client.role is not None:
                raise P4RtError(Code.FAILED_PRECONDITION, "a stream cannot change its device id")
            raise not_found(f"device {message.device_id} is not known")
        name = message.role.name
        size = len(name.encode())
        if size > MAX_ROLE_BYTES:
            raise invalid(f"role.name has {size} bytes; the limit is {MAX_ROLE_BYTES}")
        if client.role is not None and client.role != name:
            raise P4RtError(Code.FAILED_PRECONDITION, "a stream cannot change its role")
        if message.role.HasField("config") and not self._lenient:
            raise invalid("role.config: no role configuration scheme is agreed upon; leave it unset")
        return name

    def _notices(self, name: str, clients: list[ArbitrationClient]) -> Notices:
        role = self._roles[name]
        notices: Notices = []
        # the new primary is notified last (specification 5.3)
        for client in sorted(clients, key=lambda c: c is role.primary):
            update = p4r.MasterArbitrationUpdate(device_id=self.device_id)
            if name != DEFAULT_ROLE:
                update.role.name = name
            if role.highest is not None:
                set_election(update.election_id, role.highest)
            if role.primary is client:
                update.status.code = Code.OK
            elif role.primary is not None:
                update.status.code = Code.ALREADY_EXISTS
                update.status.message = "another client is primary"
            else:
                update.status.code = Code.NOT_FOUND
                update.status.message = "there is no primary"
            notices.append((client, update))
        return notices
