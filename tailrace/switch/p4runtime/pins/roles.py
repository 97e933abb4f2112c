# SPDX-License-Identifier: Apache-2.0
"""Access of roles to entities: @p4runtime_role in P4Info.

The specification leaves the access of roles to role.config (section 5); SAI's programs, sonic-pins and 4ward
use the annotation. Without any in P4Info, every role has the full pipeline. With one, a table or an action
profile belongs to the roles that it names, or else to the default role alone. A profile without roles belongs
to those of its tables, direct resources to those of their table. All other objects without roles, such as the
headers of packet-in and packet-out, belong to every role, as do multicast groups and clone sessions. The
default role has everything.
"""

from __future__ import annotations

from dataclasses import dataclass

from finsy.proto import p4i, p4r

from tailrace.p4rt.status import Code, P4RtError, invalid
from tailrace.switch.p4runtime.arbitration import DEFAULT_ROLE
from tailrace.switch.p4runtime.entities.owner import owner_of
from tailrace.switch.p4runtime.pins.annotations import texts


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of one pipeline, by P4Info id: `owners` of objects that do not belong to every role, `names`.

    `packet_in` and `packet_out` are the ids of the controller headers, 0: none.
    """

    owners: dict[int, frozenset[str]]
    names: dict[int, str]
    packet_in: int
    packet_out: int

    def allows(self, role: str, owner: int) -> bool:
        """Whether a role has access to an object."""
        owners = self.owners.get(owner)
        return owners is None or role == DEFAULT_ROLE or role in owners

    def check(self, role: str, owner: int) -> None:
        """Rejects a role without access to an object.

        Raises:
            P4RtError: PERMISSION_DENIED.
        """
        if not self.allows(role, owner):
            owners = ", ".join(f"'{name}'" for name in sorted(self.owners[owner])) or "the default role"
            raise P4RtError(
                Code.PERMISSION_DENIED, f"role '{role}' has no access to '{self.names[owner]}', but {owners}"
            )

    def only(self, role: str, response: p4r.ReadResponse) -> p4r.ReadResponse:
        """The response without entities that a role has no access to."""
        if role == DEFAULT_ROLE:
            return response
        return p4r.ReadResponse(entities=(e for e in response.entities if self.allows(role, owner_of(e))))


def roles_of(info: p4i.P4Info) -> Roles | None:
    """The roles that P4Info names; None: none, and every role has everything.

    Raises:
        P4RtError: INVALID_ARGUMENT: an annotation has no string argument.
    """
    preambles = [
        *(item.preamble for item in info.tables),
        *(item.preamble for item in info.action_profiles),
        *(item.preamble for item in info.counters),
        *(item.preamble for item in info.meters),
        *(item.preamble for item in info.registers),
        *(item.preamble for item in info.value_sets),
        *(item.preamble for item in info.digests),
    ]
    headers = [item.preamble for item in info.controller_packet_metadata]
    preambles += headers
    owners = {preamble.id: roles for preamble in preambles if (roles := _named(preamble))}
    if not owners:
        return None
    default: frozenset[str] = frozenset()
    for table in info.tables:
        owners.setdefault(table.preamble.id, default)
    for profile in info.action_profiles:
        of_tables = (owners.get(table_id, default) for table_id in profile.table_ids)
        owners.setdefault(profile.preamble.id, default.union(*of_tables))
    names = {preamble.id: preamble.name for preamble in preambles}
    header_ids = {preamble.name: preamble.id for preamble in headers}
    return Roles(owners, names, header_ids.get("packet_in", 0), header_ids.get("packet_out", 0))


def _named(preamble: p4i.Preamble) -> frozenset[str]:
    role_names = set()
    for role in texts(preamble, "p4runtime_role"):
        if role is None:
            raise invalid(
                f"P4Info: '{preamble.name}', @p4runtime_role: expected a role's name in double quotes"
            )
        role_names.add(role)
    return frozenset(role_names)
