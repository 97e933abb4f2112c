# SPDX-License-Identifier: Apache-2.0
"""The trace hash: equal for two runs when the same frames arrived on every wire at the same times."""

from __future__ import annotations

import hashlib
import struct

from native.virtual.wire import Wire, WireEvent

_RECORD = struct.Struct("<QIII")
"""now_ns, number of the wire, bytes of the frame, its virtual bytes; the frame's bytes follow."""


class TraceHash:
    """A tap that hashes every delivery."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def __call__(self, wire: Wire, event: WireEvent, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        """Adds a delivery."""
        if event is WireEvent.RECEIVED:
            self.add(wire.index, now_ns, frame, virtual_bytes)

    def add(self, wire: int, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        """Adds a delivery on a wire."""
        self._hash.update(_RECORD.pack(now_ns, wire, len(frame), virtual_bytes) + frame)

    def hexdigest(self) -> str:
        """The hash of all deliveries so far."""
        return self._hash.hexdigest()
