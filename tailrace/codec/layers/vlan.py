# SPDX-License-Identifier: Apache-2.0
"""Coarse path classes: an 802.1Q tag of a data packet, removed at its first or second hop (Spritz §III-D).

The layer is Scapy's Dot1Q. The classes of VLAN IDs are defined by VlanId_t in p4src/common/types.p4, from
which the controller takes them; receivers never see a tag.
"""

from __future__ import annotations

ETHER_TYPE = 0x8100
