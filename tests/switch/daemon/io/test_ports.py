"""Ports: errors at the start, links going up, down and away, captures, the CPU port, what is left behind."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import select
import struct
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tailrace.switch.daemon.ports import IoLoop, PortError, ffi
from tests.switch.daemon.io.conftest import PAIR

if TYPE_CHECKING:
    from tests.switch.daemon.io.conftest import Make, Net, Wait

HEAD = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x88\xb5"


class Core:
    """No core at all: for loops that are never started."""

    handle = ffi.NULL


def test_errors_at_the_start_are_one_line_each(net: Net, switch: Make, library: Any, tmp_path: Path) -> None:
    net.veth("p0", "h0")
    for ports, text in (
        ({3: "nosuch0"}, "port 3: interface nosuch0: no such interface"),
        ({0: "a-name-that-is-too-long"}, "port 0: interface a-name-that-is-too-long: no such interface"),
        ({0: "p0", 1: "p0"}, "interface p0 is given for both port 0 and port 1"),
        ({512: "p0"}, "port 512 is out of range (0 to 511)"),
        ({-1: "p0"}, "port -1 is out of range (0 to 511)"),
        ({300: "p0"}, "port 300 is the CPU port"),
    ):
        with pytest.raises(PortError) as caught:
            switch(ports)
        assert str(caught.value) == text
    with pytest.raises(PortError, match=r"^CPU port 512 is out of range \(0 to 511\)$"):
        IoLoop(Core(), {}, 512, library=library)
    with pytest.raises(PortError, match=r"^cannot write .*p0_in\.pcap: No such file or directory$"):
        switch({0: "p0"}, pcap_dir=tmp_path / "absent")


def test_no_permission_is_one_line(net: Net, library_path: Path) -> None:
    net.veth("p0", "h0")
    program = (
        "import ctypes, os, sys\n"
        "from tailrace.cbuild import headers\n"
        "from tailrace.switch.daemon.ports import IoLoop, PortError, ffi\n"
        "class Core: handle = ffi.NULL\n"
        "lib = headers.bound(ctypes.CDLL(sys.argv[1]), ffi)\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try: IoLoop(Core(), {0: 'p0'}, library=lib)\n"
        "except PortError as e: print(e)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(library_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert done.stdout == "port 0: interface p0: no permission (root or CAP_NET_RAW is needed)\n", done.stderr


def test_the_loop_survives_an_interface_going_down_and_up(net: Net, switch: Make, wait: Wait) -> None:
    h0, h1 = net.pair()
    loop, core = switch(PAIR)
    wait(lambda: core.up(0) and core.up(1), "ports start up")

    def dropped(count: int) -> bool:
        return bool(loop.status(1).tx_down == count)

    for already in range(3):
        net.ip("link", "set", "dev", "p1", "down")
        wait(lambda: not core.up(1) and not loop.port_up(1), "port 1 down")
        h0.send(HEAD + bytes(46))
        wait(partial(dropped, already + 1), "dropped")
        net.ip("link", "set", "dev", "p1", "up")
        wait(lambda: core.up(1) and loop.port_up(1), "port 1 up again")
        h0.send(HEAD + b"again" + bytes(46))
        assert h1.receive() == HEAD + b"again" + bytes(46)
        wait(lambda: net.ready("h1"), "the other end carries frames too")
        h1.send(HEAD + b"back" + bytes(46))
        assert h0.receive() == HEAD + b"back" + bytes(46)


def test_the_other_end_going_down_is_seen(net: Net, switch: Make, wait: Wait) -> None:
    """No carrier is down too."""
    net.veth("p0", "h0")
    loop, core = switch({0: "p0"})
    wait(lambda: core.up(0), "up")
    net.ip("link", "set", "dev", "h0", "down")
    wait(lambda: not core.up(0), "no carrier")
    net.ip("link", "set", "dev", "h0", "up")
    wait(lambda: core.up(0) and loop.port_up(0), "carrier")


def test_a_port_may_start_down(net: Net, switch: Make, wait: Wait) -> None:
    net.veth("p0", "h0")
    net.veth("p1", "h1")
    net.ip("link", "set", "dev", "p0", "down")
    h1 = net.wire("h1")
    loop, core = switch(PAIR)
    assert not core.up(0)
    assert not loop.port_up(0)
    net.ip("link", "set", "dev", "p0", "up")
    wait(lambda: core.up(0) and net.ready("h0"), "up")
    h0 = net.wire("h0")
    h0.send(HEAD + bytes(46))
    assert h1.receive() == HEAD + bytes(46)


def test_the_loop_survives_a_deleted_interface(net: Net, switch: Make, wait: Wait) -> None:
    for i in range(4):
        net.veth(f"p{i}", f"h{i}")
    h2, h3, h1 = net.wire("h2"), net.wire("h3"), net.wire("h1")
    loop, core = switch({i: f"p{i}" for i in range(4)})
    net.ip("link", "del", "dev", "p0")
    wait(lambda: loop.status(0).deleted == 1 and not core.up(0), "deleted")
    h1.send(HEAD + bytes(46))
    wait(lambda: loop.status(0).tx_down == 1, "nowhere to go")
    h2.send(HEAD + bytes(46))
    assert h3.receive() == HEAD + bytes(46)


def test_a_deleted_interface_comes_back(net: Net, switch: Make, wait: Wait) -> None:
    """Its port is opened anew on whatever has the name, as often as that happens."""
    for i in range(2):
        net.veth(f"p{i}", f"h{i}")
    loop, core = switch({i: f"p{i}" for i in range(2)})
    for _ in range(3):
        net.ip("link", "del", "dev", "p0")
        wait(lambda: loop.status(0).deleted == 1 and not core.up(0), "deleted")
        net.veth("other", "place")  # so that the next interface has another index
        net.ip("link", "del", "dev", "other")
        net.veth("p0", "h0")
        wait(lambda: loop.status(0).deleted == 0 and core.up(0), "back")
        h0, h1 = net.wire("h0"), net.wire("h1")
        h0.send(HEAD + bytes(46))
        assert h1.receive() == HEAD + bytes(46)
        h1.send(HEAD + bytes(60))
        assert h0.receive() == HEAD + bytes(60)


def test_an_interface_that_was_moved_comes_back(net: Net, switch: Make, wait: Wait) -> None:
    """Out of the namespace and in again; another interface's coming changes nothing."""
    for i in range(2):
        net.veth(f"p{i}", f"h{i}")
    loop, core = switch({i: f"p{i}" for i in range(2)})
    away = net.space()
    net.move("p0", away)
    wait(lambda: loop.status(0).deleted == 1 and not core.up(0), "moved")
    net.veth("p9", "h9")
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    with away.entered():
        net.ip("link", "set", "dev", "p0", "netns", f"/proc/{os.getpid()}/fd/{here}")
    os.close(here)
    assert loop.status(0).deleted == 1 or not core.up(0), "it is down as yet"
    net.ip("link", "set", "dev", "p0", "up")
    wait(lambda: loop.status(0).deleted == 0 and core.up(0), "back")
    h0, h1 = net.wire("h0"), net.wire("h1")
    h0.send(HEAD + bytes(46))
    assert h1.receive() == HEAD + bytes(46)


def records(path: Path) -> list[bytes]:
    """The frames of a capture file."""
    data = path.read_bytes()
    assert struct.unpack_from("<IHH", data) == (0xA1B2C3D4, 2, 4)
    at, frames = 24, []
    while at < len(data):
        kept, length = struct.unpack_from("<8xII", data, at)
        assert kept == length
        frames.append(data[at + 16 : at + 16 + kept])
        at += 16 + kept
    return frames


def test_captures_can_be_read_while_running(net: Net, switch: Make, wait: Wait, tmp_path: Path) -> None:
    """The names are BMv2's: <interface>_in.pcap and <interface>_out.pcap."""
    h0, h1 = net.pair()
    switch(PAIR, pcap_dir=tmp_path)
    tagged = HEAD[:12] + b"\x81\0\0\x05" + HEAD[12:] + bytes(50)
    frames = [HEAD + bytes(i) for i in range(1, 100)] + [tagged]
    for frame in frames:
        h0.send(frame)
        h1.receive()
    wait(
        lambda: len((tmp_path / "p1_out.pcap").read_bytes()) == 24 + sum(16 + len(f) for f in frames),
        "flushed",
    )
    assert records(tmp_path / "p0_in.pcap") == frames
    assert records(tmp_path / "p1_out.pcap") == frames
    assert records(tmp_path / "p0_out.pcap") == []
    assert records(tmp_path / "p1_in.pcap") == []
    assert struct.unpack_from("<I", (tmp_path / "p0_in.pcap").read_bytes(), 20) == (1,)


def test_a_capture_without_link_header_says_so(net: Net, switch: Make, tmp_path: Path) -> None:
    net.tap("t0", tun=True)
    switch({0: "t0"}, pcap_dir=tmp_path)
    assert struct.unpack_from("<I", (tmp_path / "t0_in.pcap").read_bytes(), 20) == (101,)


def test_frames_for_the_cpu_port_reach_python(net: Net, switch: Make) -> None:
    net.veth("p0", "h0")
    h0 = net.wire("h0")
    loop, _ = switch({0: "p0"})
    got: list[bytes] = []
    want = [HEAD + b"to-cpu" + struct.pack("!I", i) for i in range(500)]
    for frame in want:
        h0.send(frame)
    while len(got) < len(want):
        assert select.select([loop.events_fd], [], [], 30)[0]
        got += loop.packet_ins()
    assert want == got
    assert loop.packet_ins() == []
    assert not select.select([loop.events_fd], [], [], 0)[0]
    assert loop.packet_in_drops() == 0


def test_packet_ins_that_nobody_fetches_are_bounded_and_counted(net: Net, switch: Make, wait: Wait) -> None:
    loop, _ = switch({})
    for i in range(5000):
        loop.send_packet_out(b"to-cpu" + struct.pack("!I", i))
    wait(lambda: loop.packet_in_drops() == 904, "the rest is counted")
    assert [b"to-cpu" + struct.pack("!I", i) for i in range(4096)] == loop.packet_ins()


def test_packet_outs_of_many_threads_leave(net: Net, switch: Make) -> None:
    net.veth("p0", "h0")
    h0 = net.wire("h0")
    loop, _ = switch({0: "p0"})

    def send(thread: int) -> None:
        for i in range(200):
            loop.send_packet_out(HEAD + struct.pack("!HH", thread, i) + bytes(50))

    threads = [threading.Thread(target=send, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    got = [struct.unpack_from("!HH", h0.receive(), 14) for _ in range(800)]
    for thread in threads:
        thread.join()
    for n in range(4):
        assert [i for t, i in got if t == n] == list(range(200))


def test_a_digest_makes_the_descriptor_readable(net: Net, switch: Make, library: Any) -> None:
    loop, core = switch({})
    loop.inject(0, b"digest")
    assert select.select([loop.events_fd], [], [], 30)[0]
    core.lib.standin_take_digests(core.handle)


def test_inject_refuses_a_bad_port(net: Net, switch: Make, library: Any) -> None:
    loop, core = switch({})
    with pytest.raises(PortError, match="port 512: expected one from 0 to 511"):
        loop.inject(512, b"x")
    with (
        IoLoop(core, {}, library=library) as silent,
        pytest.raises(PortError, match="there is no CPU port"),
    ):
        silent.send_packet_out(b"x")


def left() -> tuple[set[str], set[str]]:
    """Descriptors and threads of this process."""
    # The listing's own descriptor is open in both listings alike.
    fds, tasks = Path("/proc/self/fd"), Path("/proc/self/task")
    return {p.name for p in fds.iterdir()}, {p.name for p in tasks.iterdir()}


def test_closing_leaves_nothing_behind(net: Net, switch: Make, wait: Wait) -> None:
    net.veth("p0", "h0")
    before = left()
    loop, _ = switch({0: "p0"})
    wait(lambda: "promiscuity 1" in net.ip("-d", "link", "show", "dev", "p0"), "promiscuous")
    loop.close()
    loop.close()
    assert before == left()
    assert "promiscuity 0" in net.ip("-d", "link", "show", "dev", "p0")
    for call in (loop.now_ns, loop.packet_ins, loop.packet_in_drops, loop.start, lambda: loop.status(0)):
        with pytest.raises(PortError, match=r"closed|before"):
            call()


def test_status_of_an_unknown_port_is_a_key_error(net: Net, switch: Make) -> None:
    loop, _ = switch({})
    with pytest.raises(KeyError):
        loop.status(0)
    with pytest.raises(PortError, match="started before"):
        loop.start()
