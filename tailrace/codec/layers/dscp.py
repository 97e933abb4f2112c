# SPDX-License-Identifier: Apache-2.0
"""Classes of packets by DSCP, the upper six bits of the TOS byte (Spritz §II-B, §III).

The numbers are those of Dscp_t in p4src/common/types.p4.

* STEERED: the entropy value decides the packet's path, whatever the switches do with others. The answers to
  such packets are steered, too.
* TRIMMED: a data packet that ends after its BTH, because a queue had no room for more. Its lengths are those
  of what is left, and it has no ICRC. TRIMMED_STEERED: the same of a packet that was STEERED.
* DEMOTED: an ACK, NAK, CNP or NIC ACK of a host that sends too many of them; it waits with data.
  DEMOTED_STEERED: the same of a packet that was STEERED. To NICs both mean nothing.
"""

from __future__ import annotations

from enum import IntEnum


class Dscp(IntEnum):
    """What a DSCP says."""

    DEFAULT = 0
    STEERED = 7
    TRIMMED = 11
    TRIMMED_STEERED = 15
    DEMOTED = 19
    DEMOTED_STEERED = 23


TRIMMED = (Dscp.TRIMMED, Dscp.TRIMMED_STEERED)
DSCP_SHIFT = 2  # in the TOS byte: above the two bits of ECN
