# SPDX-License-Identifier: Apache-2.0
"""Captures of wires as pcapng with nanosecond stamps: one file, one interface a wire.

Source: IETF draft-ietf-opsawg-pcapng: Section Header, Interface Description and Enhanced Packet Blocks.
"""

from __future__ import annotations

import struct
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from native.virtual.errors import NetworkError
from native.virtual.wire import Wire, WireEvent

_SECTION_HEADER, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_LINKTYPE_ETHERNET = 1
_OPTION_IF_NAME, _OPTION_IF_TSRESOL = 2, 9
_NANOSECONDS = 9


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _block(kind: int, body: bytes) -> bytes:
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


class Capture:
    """A tap that writes what is received and lost; a lost frame is marked by its comment.

    The stamp is the virtual time at which the last bit arrives. Virtual payload shows as a cut frame.
    """

    _COMMENT = _option(1, b"lost on the wire") + struct.pack("<HH", 0, 0)

    def __init__(self, path: Path) -> None:
        """Creates the file.

        Raises:
            NetworkError: it cannot be written.
        """
        self._interfaces: dict[int, int] = {}
        try:
            self._file: BinaryIO = path.open("wb")
        except OSError as error:
            raise NetworkError(f"cannot write the capture {path}: {error.strerror}") from None
        # version 1.0, length of the section unknown
        self._file.write(_block(_SECTION_HEADER, struct.pack("<IHHq", _BYTE_ORDER_MAGIC, 1, 0, -1)))

    def _interface(self, wire: Wire) -> int:
        number = self._interfaces.get(wire.index)
        if number is None:
            number = self._interfaces[wire.index] = len(self._interfaces)
            options = _option(_OPTION_IF_NAME, wire.name.encode())
            options += _option(_OPTION_IF_TSRESOL, bytes([_NANOSECONDS])) + struct.pack("<HH", 0, 0)
            self._file.write(_block(_INTERFACE, struct.pack("<HHI", _LINKTYPE_ETHERNET, 0, 0) + options))
        return number

    def __call__(self, wire: Wire, event: WireEvent, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        """Writes a frame."""
        if event is WireEvent.SENT:
            return
        head = struct.pack(
            "<IIIII",
            self._interface(wire),
            now_ns >> 32,
            now_ns & 0xFFFFFFFF,
            len(frame),
            len(frame) + virtual_bytes,
        )
        comment = self._COMMENT if event is WireEvent.LOST else b""
        self._file.write(_block(_PACKET, head + _padded(frame) + comment))

    def close(self) -> None:
        """Ends the file."""
        self._file.close()

    def __enter__(self) -> Capture:
        """The capture itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the file."""
        self.close()
