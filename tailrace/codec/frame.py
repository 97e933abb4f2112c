# SPDX-License-Identifier: Apache-2.0
"""A frame on its way out of a NIC."""

from __future__ import annotations

from typing import NamedTuple


class Frame(NamedTuple):
    """Bytes from the Ethernet header on, without FCS, and the length of a payload that is only counted."""

    data: bytes
    virtual_bytes: int = 0

    @property
    def length_bytes(self) -> int:
        """Length on the wire, without preamble and FCS."""
        return len(self.data) + self.virtual_bytes
