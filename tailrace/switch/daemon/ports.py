"""Ports of the native switch: Python control of the C thread that receives and sends frames.

The thread is in `switch/daemon/io/*.c`. This module opens ports, exchanges the frames of packet-ins,
packet-outs and ports without interfaces, and reads counters. Calls release Python's GIL while they wait.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tailrace.cbuild import headers
from tailrace.cbuild.artifacts import RUNTIME
from tailrace.cbuild.cc import Recipe, library_recipe
from tailrace.cbuild.errors import BuildError
from tailrace.switch.core import lib
from tailrace.switch.core.lib import MAX_PORT, runtime_library, runtime_recipe
from tailrace.switch.core.switch import V1ModelSwitch
from tailrace.switch.core.types import PortError

__all__ = ["IoLoop", "PortError", "io_library", "io_sources"]

_HERE = Path(__file__).resolve().parent
_RING_SLOTS = 8192
"""Receive ring slots of all ports of a switch together; each takes 2 KiB, allocated at the start."""

# for calls of C: the types and functions, and the constants, that tri_loop.h declares
ffi = headers.declared([_HERE / "io" / "tri_loop.h"], lib.ffi)
C = headers.numbers(ffi)


def io_sources() -> tuple[list[Path], list[Path]]:
    """The C sources of the loop, and their include folders."""
    return sorted((_HERE / "io").glob("*.c")), [_HERE / "io", RUNTIME]


@functools.cache
def io_library(sanitize: bool = False) -> Any:
    """The functions of the loop; compiles core and loop if they are not in the build cache.

    Args:
        sanitize: core and loop are compiled with sanitizers.

    Raises:
        BuildError: no C compiler, or no build cache.
    """
    runtime_library(sanitize)  # loaded first: the loop links to its symbols
    return headers.bound(_io_recipe(sanitize).load(), ffi)


def _io_recipe(sanitize: bool = False) -> Recipe:
    sources, include = io_sources()
    return library_recipe("libtailrace_io", sources, include, sanitize=sanitize, link=("-lpthread",))


def is_compiled() -> bool:
    """Whether the core and the loop are in the build cache.

    Raises:
        BuildError: no cache can be used.
    """
    return runtime_recipe().is_made() and _io_recipe().is_made()


class IoLoop:
    """The ports of one switch and their thread. Methods are thread-safe; after close() they raise PortError.
    The switch must outlive the loop.
    """

    def __init__(
        self,
        sw: V1ModelSwitch,
        ports: Mapping[int, str],
        cpu_port: int | None = None,
        pcap_dir: Path | None = None,
        *,
        without_interfaces: bool = False,
        ring_slots: int | None = None,
        library: Any = None,
    ) -> None:
        """Opens every interface of `ports` (port number to interface name).

        Args:
            sw: the switch core.
            ports: port numbers from 0 to 511, and interfaces of this network namespace, each given once.
            cpu_port: port whose frames packet_ins() returns; None: there is none.
            pcap_dir: folder for `<interface>_in.pcap` and `<interface>_out.pcap`; None: no captures.
            without_interfaces: all other ports exist without an interface; `inject` and `take_frames`
                exchange their frames.
            ring_slots: receive ring slots of each port, in memory shared with the kernel, 2 KiB each; 0: no
                ring, frames are read by system calls; None: 256 to 2048, 16 MiB for all ports together.
            library: another build of the C code (tests).

        Raises:
            PortError: an interface does not exist, may not be opened or is given twice, or a port number is
                out of range.
        """
        try:
            self._lib = library if library is not None else io_library()
        except BuildError as error:
            raise PortError(str(error)) from None
        self._sw = sw
        self._ports = dict(ports)
        self._cpu_port = cpu_port
        self._error = ffi.new("char[]", C.TRI_ERROR_BYTES)
        self._lock = threading.RLock()  # no call into C may outlive close()
        self._frame = ffi.new("uint8_t[]", C.TR_MAX_FRAME)
        self._started = False
        if cpu_port is not None and not 0 <= cpu_port <= MAX_PORT:
            raise PortError(f"CPU port {cpu_port} is out of range (0 to {MAX_PORT})")
        folder = ffi.NULL if pcap_dir is None else str(pcap_dir).encode()
        cpu = C.TRI_NO_CPU_PORT if cpu_port is None else cpu_port
        if ring_slots is None:
            ring_slots = min(2048, max(256, _RING_SLOTS // max(1, len(self._ports))))
        loop = self._lib.tri_new(sw.handle, cpu, folder, ring_slots, self._error)
        if not loop:
            raise PortError(self._message())
        self._loop: Any = loop
        try:
            for number, name in self._ports.items():
                self._add(loop, number, name)
            if without_interfaces and self._lib.tri_add_client_ports(loop, self._error) != 0:
                raise PortError(self._message())
        except PortError:
            self.close()
            raise

    def _message(self) -> str:
        text: bytes = ffi.string(self._error)
        return text.decode(errors="replace")

    def _add(self, loop: Any, number: int, name: str) -> None:
        if not 0 <= number <= MAX_PORT:
            raise PortError(f"port {number} is out of range (0 to {MAX_PORT})")
        if self._lib.tri_add_port(loop, number, name.encode(errors="surrogateescape"), self._error) != 0:
            raise PortError(self._message())

    def _open_loop(self) -> Any:
        if self._loop is None:
            raise PortError("the ports are closed")
        return self._loop

    def start(self) -> None:
        """Starts the thread. Call once.

        Raises:
            PortError: no thread or descriptor could be created, or the loop was started before.
        """
        if self._started:
            raise PortError("the ports were started before")
        with self._lock:
            if self._lib.tri_start(self._open_loop(), self._error) != 0:
                raise PortError(self._message())
            self._started = True

    def close(self) -> None:
        """Stops the thread and closes all sockets and files; idempotent."""
        with self._lock:
            loop, self._loop = self._loop, None
            if loop is not None:
                self._lib.tri_free(loop)

    def __enter__(self) -> IoLoop:
        """The loop itself, not yet started."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the loop."""
        self.close()

    def _call(self, function: str, *arguments: object) -> Any:
        """The result of a function of tri_loop.h; its first argument is the loop."""
        with self._lock:
            return getattr(self._lib, function)(self._open_loop(), *arguments)

    def now_ns(self) -> int:
        """The core's clock: monotonic, in ns since this object was created."""
        return int(self._call("tri_now"))

    def inject(self, port: int, data: bytes, origin: int = 0) -> None:
        """Delivers a frame to the core as received on `port` now.

        A port without an interface that is down drops the frame.

        Args:
            origin: id of the frame and of all frames that result from it, up to 2^32 - 1; 0: no id.

        Raises:
            PortError: no such port number, or the core has no memory left.
        """
        if not 0 <= port <= MAX_PORT:
            raise PortError(f"port {port}: expected one from 0 to {MAX_PORT}")
        if self._call("tri_inject", port, data, len(data), origin) != 0:
            raise PortError(f"port {port} takes no frame of {len(data)} bytes")

    def send_packet_out(self, data: bytes) -> None:
        """Delivers a frame to the core as received on the CPU port now.

        Raises:
            PortError: there is no CPU port.
        """
        if self._cpu_port is None:
            raise PortError("there is no CPU port")
        self.inject(self._cpu_port, data)

    @property
    def events_fd(self) -> int:
        """Descriptor that is readable while packet-ins or digests may be pending. Do not read from it."""
        return int(self._call("tri_frames_fd", C.TRI_PACKET_INS))

    def packet_ins(self) -> list[bytes]:
        """Removes and returns the frames sent to the CPU port, oldest first, at most TRI_BOX_FRAMES.

        Makes events_fd unreadable first. So fetch digests after this call: then no event is missed.
        """
        return [data for _, _, data in self._take(C.TRI_PACKET_INS, C.TRI_BOX_FRAMES)]

    def _take(self, box: int, most: int) -> list[tuple[int, int, bytes]]:
        """Makes a box's descriptor unreadable, then removes at most `most` frames (port, origin, bytes)."""
        frames = []
        port, origin = ffi.new("uint32_t *"), ffi.new("uint32_t *")
        with self._lock:
            loop = self._open_loop()
            self._lib.tri_frames_clear(loop, box)
            for _ in range(most):
                length = self._lib.tri_frames_take(loop, box, self._frame, len(self._frame), port, origin)
                if length < 0:
                    break
                data = bytes(ffi.buffer(self._frame, min(length, len(self._frame))))
                frames.append((int(port[0]), int(origin[0]), data))
        return frames

    def set_listening(self, on: bool) -> None:
        """Sets whether frames of ports without interfaces wait for `take_frames`, or are dropped.

        Drops the frames that wait now.
        """
        self._call("tri_client_listen", on)

    @property
    def frames_fd(self) -> int:
        """Descriptor that is readable while `take_frames` may return frames. Do not read from it."""
        return int(self._call("tri_frames_fd", C.TRI_CLIENT_FRAMES))

    def take_frames(self, most: int) -> list[tuple[int, int, bytes]]:
        """Removes at most `most` frames sent by ports without interfaces, oldest first.

        Returns port, origin (as in inject) and bytes of each frame. Makes frames_fd unreadable first:
        repeat until no frame is left.
        """
        return self._take(C.TRI_CLIENT_FRAMES, most)

    def waiting(self) -> int:
        """The number of frames that wait for `take_frames`."""
        return int(self._call("tri_frames_waiting", C.TRI_CLIENT_FRAMES))

    def idle(self) -> bool:
        """Whether no frame waits for `take_frames`, and no frame in the switch may still be sent."""
        return bool(self._call("tri_client_idle"))

    def set_port(self, port: int, up: bool) -> None:
        """Sets a port without an interface up or down.

        Raises:
            PortError: there is no such port.
        """
        if not 0 <= port <= MAX_PORT or self._call("tri_client_set_up", port, up) != 0:
            raise PortError(f"there is no port {port} without an interface")

    def packet_in_drops(self) -> int:
        """Frames for the CPU port that were dropped because too many packet-ins were pending."""
        return int(self._call("tri_packet_in_drops"))

    def status(self, port: int) -> Any:
        """State and counters of `port` since the start: a `tri_port_info` (tri_loop.h).

        Raises:
            KeyError: no such port.
        """
        info = ffi.new("tri_port_info *")
        if port not in self._ports:
            raise KeyError(port)
        self._call("tri_port_read", port, info)
        return info

    def port_up(self, port: int) -> bool:
        """Whether the interface of `port` is up and has carrier. KeyError: no such port."""
        return bool(self.status(port).up)
