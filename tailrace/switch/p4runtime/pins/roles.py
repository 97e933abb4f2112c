# SPDX-License-Identifier: Apache-2.0
"""Access of roles to entities: @p4runtime_role in P4Info.

The specification defines access by role.config (section 5); SAI's programs, sonic-pins and the P4Runtime
switch 4ward use the annotation. If P4Info has no such annotation, every role has access to the full pipeline.
If it has one, a table or an action profile belongs to the roles in its annotation. A table without it belongs
to the default role alone, a profile without it to the roles of its tables, a direct resource to the roles of
its table. All other objects without it, such as the packet-in and packet-out headers, belong to every role,
as do multicast groups and clone sessions. The default role has access to everything.
"""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.p4rt.messages import p4i, p4r
from tailrace.p4rt.status import Code, P4RtError, invalid
from tailrace.switch.p4runtime.arbitration import DEFAULT_ROLE
from tailrace.switch.p4runtime.context import owner_of, preambles_of
from tailrace.switch.p4runtime.pins.annotations import texts


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of one pipeline.

    `owners`: by P4Info id of an object, the roles that have access to it; an object without an item belongs
    to every role. `names`: the objects' names by id. `packet_in`, `packet_out`: ids of the headers; 0: none.
    """

    owners: dict[int, frozenset[str]]
    names: dict[int, str]
    packet_in: int
    packet_out: int

    def allows(self, role: str, object_id: int) -> bool:
        """Whether a role has access to an object."""
        owners = self.owners.get(object_id)
        return owners is None or role == DEFAULT_ROLE or role in owners

    def check(self, role: str, object_id: int) -> None:
        """Rejects a role without access to an object.

        Raises:
            P4RtError: PERMISSION_DENIED.
        """
        if not self.allows(role, object_id):
            owners = ", ".join(f"'{name}'" for name in sorted(self.owners[object_id])) or "the default role"
            name = self.names[object_id]
            raise P4RtError(
                Code.PERMISSION_DENIED, f"role '{role}' has no access to '{name}', which belongs to {owners}"
            )

    def only(self, role: str, response: p4r.ReadResponse) -> p4r.ReadResponse:
        """The response without entities that a role has no access to."""
        if role == DEFAULT_ROLE:
            return response
        return p4r.ReadResponse(entities=(e for e in response.entities if self.allows(role, owner_of(e))))


def roles_of(info: p4i.P4Info) -> Roles | None:
    """The roles that P4Info names; None: it names none, so every role has access to everything.

    Raises:
        P4RtError: INVALID_ARGUMENT: an annotation has no string argument.
    """
    preambles = list(preambles_of(info))
    headers = [item.preamble for item in info.controller_packet_metadata]
    owners = {preamble.id: roles for preamble in preambles if (roles := _named(preamble))}
    if not owners:
        return None
    default: frozenset[str] = frozenset()  # the default role, which has access to everything, is not listed
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
