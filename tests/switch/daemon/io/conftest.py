"""Network namespaces, interfaces and a stand-in core for the tests of the packet loop."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cffi import FFI

from tailrace.cbuild import headers
from tailrace.cbuild.cc import library_recipe
from tailrace.switch.daemon import ports
from tailrace.switch.daemon.ports import IoLoop, io_sources

CLONE_NEWNET = 0x40000000
SOL_PACKET = 263
PACKET_VNET_HDR = 15
PACKET_IGNORE_OUTGOING = 23
SO_RCVBUFFORCE = 33
ETH_P_ALL = 0x0003
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_TAP, IFF_NO_PI = 0x0001, 0x0002, 0x1000
PATIENCE_S = 30.0
LIBC = ctypes.CDLL(None, use_errno=True)
HERE = Path(__file__).parent
PAIR = {0: "p0", 1: "p1"}
"""Interfaces by port: the stand-in sends what comes by one of them to the other one."""


@pytest.fixture
def wait() -> Wait:
    """await_true, for the tests."""
    return await_true


def await_true(condition: Callable[[], bool], what: str) -> None:
    """Waits for a state that other threads or the kernel bring about; fails after PATIENCE_S."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"never happened: {what}"
        select.select([], [], [], 0.002)


def run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return done.stdout


class Space:
    """A network namespace without a name: it is gone with its last user."""

    def __init__(self) -> None:
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        if LIBC.unshare(CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            os.close(before)
            raise OSError(number, os.strerror(number))
        try:
            self.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            for scope in ("all", "default"):
                knob = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
                if knob.exists():
                    knob.write_text("1")
        finally:
            assert LIBC.setns(before, CLONE_NEWNET) == 0
            os.close(before)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """This thread, and processes it starts, are inside."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        assert LIBC.setns(self.fd, CLONE_NEWNET) == 0
        try:
            yield
        finally:
            assert LIBC.setns(before, CLONE_NEWNET) == 0
            os.close(before)

    @property
    def path(self) -> str:
        """A name of the namespace that other processes understand."""
        return f"/proc/{os.getpid()}/fd/{self.fd}"


class Wire:
    """A raw socket on an interface: what a host at the other end of a port sees and sends."""

    def __init__(self, name: str, *, offload: bool = False) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        self.socket.setsockopt(SOL_PACKET, PACKET_VNET_HDR, int(offload))
        self.socket.bind((name, ETH_P_ALL))
        self.socket.settimeout(PATIENCE_S)

    def send(self, frame: bytes) -> None:
        self.socket.send(frame)

    def receive(self) -> bytes:
        return self.socket.recv(1 << 17)

    def silent(self) -> bool:
        """Whether nothing waits at this moment."""
        return not select.select([self.socket], [], [], 0)[0]


class Tap:
    """A TUN or TAP interface and its user-space end."""

    def __init__(self, name: str, *, tun: bool) -> None:
        self.fd = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
        flags = (IFF_TUN if tun else IFF_TAP) | IFF_NO_PI
        fcntl.ioctl(self.fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))

    def send(self, frame: bytes) -> None:
        os.write(self.fd, frame)

    def receive(self) -> bytes:
        assert select.select([self.fd], [], [], PATIENCE_S)[0], "nothing came"
        return os.read(self.fd, 1 << 17)


@dataclass
class Net:
    """The namespace that the test runs in, and whatever it made there."""

    sockets: list[Wire] = field(default_factory=list)
    taps: list[Tap] = field(default_factory=list)
    spaces: list[Space] = field(default_factory=list)

    def ip(self, *words: str) -> str:
        """The ip command, in this namespace."""
        return run("ip", *words)

    def tc(self, *words: str) -> str:
        """The tc command, in this namespace."""
        return run("tc", *words)

    def veth(self, port: str, host: str, *, mtu: int = 1500) -> None:
        """A pair, both ends up; `port` is for the switch."""
        run(*f"ip link add name {port} mtu {mtu} type veth peer name {host} mtu {mtu}".split())
        run("ip", "link", "set", "dev", port, "up")
        run("ip", "link", "set", "dev", host, "up")
        await_true(lambda: self.ready(port) and self.ready(host), f"{port} and {host} up")

    def ready(self, name: str) -> bool:
        """Whether the kernel carries frames over the interface: a moment after it is up, not at once."""
        (link,) = json.loads(run("ip", "-j", "link", "show", "dev", name))
        return "LOWER_UP" in link["flags"] and link["operstate"] in ("UP", "UNKNOWN")

    def wire(self, name: str, *, offload: bool = False) -> Wire:
        self.sockets.append(Wire(name, offload=offload))
        return self.sockets[-1]

    def tap(self, name: str, *, tun: bool) -> Tap:
        try:
            self.taps.append(Tap(name, tun=tun))
        except OSError as error:
            pytest.skip(f"no TUN/TAP device: {error}")
        run("ip", "link", "set", "dev", name, "mtu", "65521", "up")
        await_true(lambda: self.ready(name), f"{name} up")
        return self.taps[-1]

    def pair(self, *, mtu: int = 1500, offload: bool = False) -> tuple[Wire, Wire]:
        """Pairs for the ports of PAIR; what their hosts, h0 and h1, see and send."""
        for port, host in zip(PAIR.values(), ("h0", "h1"), strict=True):
            self.veth(port, host, mtu=mtu)
        return self.wire("h0", offload=offload), self.wire("h1")

    def space(self) -> Space:
        self.spaces.append(Space())
        return self.spaces[-1]

    def move(self, name: str, space: Space) -> None:
        run("ip", "link", "set", "dev", name, "netns", space.path)


@pytest.fixture(scope="session")
def permitted() -> None:
    """Skips with the reason where namespaces cannot be made."""
    try:
        os.close(Space().fd)
    except OSError as error:
        pytest.skip(f"needs root and network namespaces: {error}")


@pytest.fixture
def net(permitted: None) -> Iterator[Net]:
    """A fresh network namespace, entered for the time of the test."""
    space, made = Space(), Net()
    with space.entered():
        yield made
        for wire in made.sockets:
            wire.socket.close()
        for tap in made.taps:
            os.close(tap.fd)
    for other in [*made.spaces, space]:
        os.close(other.fd)


@pytest.fixture(scope="session")
def library_path() -> Path:
    """The loop built together with the stand-in core."""
    sources, include = io_sources()
    sources.append(HERE / "standin.c")
    sanitize = os.environ.get("ASAN") == "1"
    return library_recipe("libtailrace_io_standin", sources, [*include, HERE], sanitize=sanitize).path()


@pytest.fixture(scope="session")
def ffi() -> FFI:
    """What is declared of offloading and of the stand-in."""
    _, (io, _) = io_sources()
    return headers.declared([io / "tri_offload.h", HERE / "standin.h"], ports.ffi)


@pytest.fixture(scope="session")
def library(library_path: Path) -> Any:
    """Its functions, as the switch calls them."""
    return headers.bound(ctypes.CDLL(str(library_path)), ports.ffi)


@pytest.fixture(scope="session")
def inside(library_path: Path, ffi: FFI) -> Any:
    """Its other functions."""
    return headers.bound(ctypes.CDLL(str(library_path)), ffi)


Make = Callable[..., tuple[Any, Any]]
Wait = Callable[[Callable[[], bool], str], None]


class Core:
    """The stand-in: port p goes out on p ^ 1, delayed by delay_ns (see standin.c)."""

    CPU_PORT = 300

    def __init__(self, lib: Any, delay_ns: int) -> None:
        self.lib = lib
        self.handle = lib.standin_new(delay_ns)

    def read(self, what: str) -> int:
        names = ["dropped", "slots", "blocks", "late"]
        return int(self.lib.standin_read(self.handle, names.index(what)))

    def up(self, port: int) -> bool:
        return bool(self.lib.standin_up(self.handle, port))


@pytest.fixture(params=[pytest.param(None, id="ring"), pytest.param(0, id="socket")])
def ring_slots(request: pytest.FixtureRequest) -> int | None:
    """Both ways by which frames come in."""
    slots: int | None = request.param
    return slots


@pytest.fixture
def switch(library: Any, inside: Any, ring_slots: int | None) -> Iterator[Callable[..., tuple[IoLoop, Core]]]:
    """Makes a started loop around a new stand-in; afterwards checks that every buffer came back."""
    made: list[tuple[IoLoop, Core]] = []

    def make(
        ports: dict[int, str], *, delay_ns: int = 0, pcap_dir: Path | None = None
    ) -> tuple[IoLoop, Core]:
        core = Core(inside, delay_ns)
        loop = IoLoop(core, ports, Core.CPU_PORT, pcap_dir, library=library, ring_slots=ring_slots)
        made.append((loop, core))
        loop.start()
        return loop, core

    yield make
    for loop, core in made:
        loop.close()
        assert core.read("late") == 0
        assert core.read("slots") == 0
        inside.standin_free(core.handle)
