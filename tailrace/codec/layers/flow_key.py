# SPDX-License-Identifier: Apache-2.0
"""The 5-tuple of a flow in control packets: 13 bytes (Flowcut §III-A1)."""

from __future__ import annotations

from typing import Any

from scapy.fields import ByteField, Field, IPField, ShortField


def flow_key_fields() -> list[Field[Any, Any]]:
    """src:32 dst:32 sport:16 dport:16 protocol:8 of the data flow; new field objects for each layer."""
    return [
        IPField("src", "0.0.0.0"),
        IPField("dst", "0.0.0.0"),
        ShortField("sport", 0),
        ShortField("dport", 0),
        ByteField("protocol", 17),
    ]
