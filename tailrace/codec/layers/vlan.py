# SPDX-License-Identifier: Apache-2.0
"""Coarse path classes: an 802.1Q tag of a data packet, cleared at its first or second hop (Spritz §III-D).

The layer is Scapy's Dot1Q. Which VLAN ID means which class the controller knows, from VlanId_t in
p4src/common/types.p4; no receiver ever sees a tag.
"""

from __future__ import annotations

ETHER_TYPE = 0x8100
