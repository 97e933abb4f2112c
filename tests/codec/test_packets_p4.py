# SPDX-License-Identifier: Apache-2.0
"""The closed sets of numbers in tailrace/codec/layers are those of the P4 sources, name by name."""

from __future__ import annotations

import re
from pathlib import Path

from tailrace.codec.layers.dscp import TRIMMED, Dscp
from tailrace.codec.table import VLAN

COMMON = Path(__file__).parents[2] / "p4src" / "common"


def p4_enum(name: str) -> dict[str, int]:
    """The members of an enum of common/types.p4."""
    text = re.sub(r"//.*", "", (COMMON / "types.p4").read_text())
    matched = re.search(rf"enum bit<\d+> {name} \{{([^}}]*)\}}", text)
    assert matched is not None, f"there is no {name}"
    return {key: int(value, 0) for key, value in re.findall(r"(\w+)\s*=\s*(\w+)", matched[1])}


def test_classes_are_those_of_the_p4_source():
    """No member of Dscp_t is missing on either side, and none has another number."""
    assert p4_enum("Dscp_t") == {member.name: int(member) for member in Dscp}


def test_the_ether_type_of_vlan_tags_is_that_of_the_p4_source():
    """802.1Q."""
    matched = re.search(r"ETHERTYPE_VLAN\s*=\s*(0x\w+);", (COMMON / "headers.p4").read_text())
    assert matched is not None
    assert VLAN == int(matched[1], 0)


def test_trimmed_classes_are_those_named_so():
    """Also of packets that are steered."""
    assert {member for member in Dscp if member.name.startswith("TRIMMED")} == set(TRIMMED)
