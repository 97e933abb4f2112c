# SPDX-License-Identifier: Apache-2.0
"""A separate script that captures links: one pcap file per link, with the kernel's nanosecond timestamps.

Frames are captured where they arrive, at both ends of the link. So each frame is captured once, however it
was sent: frames of a packet socket may bypass the point where the sender's interface is captured.
"""

from __future__ import annotations

import errno
import json
import selectors
import signal
import socket
import struct
import sys
import time
from pathlib import Path
from typing import BinaryIO

from fabric_sandbox import inside

from tailrace.codec.captures import PCAP_HEADER, pcap_packet

_MOST_BYTES = 16384
_ETH_P_ALL = 3
_SOL_PACKET, _PACKET_AUXDATA, _PACKET_IGNORE_OUTGOING = 263, 8, 23
_SO_TIMESTAMPNS = 35
_BUFFER_BYTES = 8 << 20
_ANCILLARY_BYTES = 256
_AUX = struct.Struct("=IIIHHHH")
_VLAN_VALID, _VLAN_TPID_VALID, _VLAN_8021Q = 0x10, 0x40, 0x8100
_FLUSH_S = 0.5


def open_tap(interface: str, pid: int) -> socket.socket:
    """A socket that captures frames arriving at an interface in the namespace of process `pid`."""
    with inside(pid):
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    tap.setblocking(False)
    tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
    tap.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    tap.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)
    tap.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    tap.bind((interface, _ETH_P_ALL))
    return tap


def read_frame(tap: socket.socket) -> tuple[int, bytes] | None:
    """The time in ns and the bytes of the next frame, with its VLAN tag in place; None: no frame waits."""
    try:
        frame, ancillary, _flags, _address = tap.recvmsg(_MOST_BYTES, _ANCILLARY_BYTES)
    except (BlockingIOError, InterruptedError):
        return None
    except OSError as error:
        # raised once when the interface goes down; the socket works again when it comes up
        if error.errno == errno.ENETDOWN:
            return None
        raise
    time_ns = 0
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, rest_ns = struct.unpack("=qq", data[:16])
            time_ns = seconds * 1_000_000_000 + rest_ns
        elif (level, kind) == (_SOL_PACKET, _PACKET_AUXDATA):
            status, *_lengths, tci, tpid = _AUX.unpack(data[: _AUX.size])
            # the kernel strips the tag and passes it as ancillary data
            if status & _VLAN_VALID:
                tag = tpid if status & _VLAN_TPID_VALID else _VLAN_8021Q
                frame = frame[:12] + struct.pack("!HH", tag, tci) + frame[12:]
    return time_ns, frame


class Recorder:
    """Writes frames from taps (sockets of open_tap) to files until `running` is false."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._files: list[BinaryIO] = []
        self.running = True

    def add(self, path: Path, taps: list[socket.socket]) -> None:
        """Records the frames of all `taps` in one file."""
        file = path.open("wb")
        file.write(PCAP_HEADER)
        self._files.append(file)
        for tap in taps:
            self._selector.register(tap, selectors.EVENT_READ, file)

    def run(self) -> None:
        """Records until `running` is false, then empties the sockets."""
        flushed = time.monotonic()
        while self.running:
            self._take(_FLUSH_S)
            if time.monotonic() - flushed > _FLUSH_S:
                flushed = time.monotonic()
                self._flush()
        while self._take(0):
            pass
        self._flush()

    def _take(self, timeout_s: float) -> bool:
        ready = self._selector.select(timeout_s)
        for key, _ in ready:
            tap = key.fileobj
            assert isinstance(tap, socket.socket)
            while (read := read_frame(tap)) is not None:
                key.data.write(pcap_packet(*read, len(read[1])))
        return bool(ready)

    def _flush(self) -> None:
        for file in self._files:
            file.flush()


def main() -> int:
    """Prints the event "ready", and records the links of the job file until SIGTERM.

    The job file is [{"file", "taps": [[interface, pid], ...]}, ...].
    """
    recorder = Recorder()

    def end(_number: int, _frame: object) -> None:
        recorder.running = False

    signal.signal(signal.SIGTERM, end)
    for link in json.loads(Path(sys.argv[1]).read_text()):
        recorder.add(Path(link["file"]), [open_tap(interface, pid) for interface, pid in link["taps"]])
    print(json.dumps({"event": "ready"}), flush=True)
    recorder.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
