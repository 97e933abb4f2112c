# SPDX-License-Identifier: Apache-2.0
"""The P4Info object that an entity belongs to."""

from __future__ import annotations

from typing import Any

from tailrace.p4rt.messages import p4r

_OWNER_IDS = {
    "table_entry": ("table_id",),
    "direct_counter_entry": ("table_entry", "table_id"),
    "direct_meter_entry": ("table_entry", "table_id"),
    "action_profile_member": ("action_profile_id",),
    "action_profile_group": ("action_profile_id",),
    "counter_entry": ("counter_id",),
    "meter_entry": ("meter_id",),
    "register_entry": ("register_id",),
    "value_set_entry": ("value_set_id",),
    "digest_entry": ("digest_id",),
}
"""Per kind of entity, the path of the field with the id of its P4Info object, such as a table."""


def owner_of(entity: p4r.Entity) -> int:
    """The id of the P4Info object that an entity belongs to; 0: it belongs to none, or is a wildcard."""
    which = entity.WhichOneof("entity")
    if which is None or which not in _OWNER_IDS:
        return 0
    value: Any = getattr(entity, which)
    for step in _OWNER_IDS[which]:
        value = getattr(value, step)
    return int(value)
