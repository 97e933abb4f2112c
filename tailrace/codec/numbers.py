# SPDX-License-Identifier: Apache-2.0
"""Numbers of frames for those who make none: a controller knows them without Scapy, which takes as long to
import as everything else that it needs.
"""

from __future__ import annotations

from typing import Final

TTL = 64
"""With which hosts send."""

FIRST_PORT: Final = 49152
LAST_PORT: Final = 65535
"""UDP source ports from which NICs take entropy: those that are nobody's in particular (RFC 6335)."""
