# SPDX-License-Identifier: Apache-2.0
"""Constants of frames for code without Scapy, such as controllers: importing Scapy takes as long as
everything else that they need.
"""

from __future__ import annotations

from typing import Final

TTL = 64
"""The initial TTL of hosts' packets."""

FIRST_PORT: Final = 49152
LAST_PORT: Final = 65535
"""The range of UDP source ports that NICs use as entropy: the dynamic ports (RFC 6335)."""
