# SPDX-License-Identifier: Apache-2.0
"""Classes of packets by DSCP, the upper six bits of the TOS byte (Spritz §II-B, §III).

The values are those of Dscp_t in p4src/common/types.p4.

* STEERED: the packet's entropy value decides its path, whatever the switches do with other packets. ACKs of
  such packets are steered, too.
* TRIMMED: a data packet that a full queue has cut after its BTH. Its length fields are those of the trimmed
  packet, and it has no ICRC. TRIMMED_STEERED: the same for a STEERED packet.
* DEMOTED: an ACK, NAK, CNP or NIC ACK of a host that sends too many of them; it is queued with data.
  DEMOTED_STEERED: the same for a STEERED packet. NICs ignore both.
"""

from __future__ import annotations

from enum import IntEnum


class Dscp(IntEnum):
    """The DSCP of each class."""

    DEFAULT = 0
    STEERED = 7
    TRIMMED = 11
    TRIMMED_STEERED = 15
    DEMOTED = 19
    DEMOTED_STEERED = 23


TRIMMED = (Dscp.TRIMMED, Dscp.TRIMMED_STEERED)
DSCP_SHIFT = 2  # in the TOS byte: above the two bits of ECN
