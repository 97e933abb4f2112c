# SPDX-License-Identifier: Apache-2.0
"""A user's program in Mininet: the same frames at the same hosts on every target, and a controller that attaches
as those of the p4lang tutorials do.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scapy.layers.l2 import Ether
from scapy.packet import Raw

import tailrace
from tailrace.bmv2.process import EXECUTABLE
from tests.long import more
from tests.user_programs.network import (
    HOSTS,
    MACS,
    TOPOLOGY,
    arrived,
    copy_program,
    expected,
    frames_of,
    make_network,
    topology,
    write_capture,
)

TARGETS = ("native", *(("bmv2",) if shutil.which(EXECUTABLE) else ()))
SCHEME = "program:json=basic_l3.json"
QUICK = ("--transport", "gbn:rto=20ms")

SESSION = """#!/usr/bin/env python3
import queue
import grpc
from pathlib import Path
from finsy.proto import p4r, p4r_grpc
from tailrace.p4rt import programs
from tailrace.p4rt.entry_files import read_updates

def session(device_id):
    channel = grpc.insecure_channel(f"127.0.0.1:{50051 + device_id}")
    stub, requests = p4r_grpc.P4RuntimeStub(channel), queue.Queue()
    request = p4r.StreamMessageRequest()
    request.arbitration.device_id, request.arbitration.election_id.low = device_id, 1
    requests.put(request)
    responses = stub.StreamChannel(iter(requests.get, None))
    assert next(responses).arbitration.status.code == 0
    return stub, requests, responses
"""
"""With the addresses, device ids and election id of the tutorials' p4runtime_lib."""

WRITES = f"""{SESSION}
program = programs.read(Path("basic_l3.json"))
for device_id, switch in enumerate(("s1", "s2")):
    stub, requests, _ = session(device_id)
    write = p4r.WriteRequest(device_id=device_id, updates=read_updates(Path(f"{{switch}}-runtime.json"), program))
    write.election_id.low = 1
    stub.Write(write)
    requests.put(None)
"""

FORWARDS = f"""{SESSION}
_, requests, responses = session(0)
Path("ready").touch()
for response in responses:
    if response.HasField("packet"):
        request = p4r.StreamMessageRequest()
        request.packet.payload = response.packet.payload
        for number, value in enumerate((2, 0, 0), 1):
            request.packet.metadata.add(metadata_id=number, value=bytes([value]))
        requests.put(request)
"""
"""Sends each packet that it gets to port 2 (tests/programs/packet_io.p4)."""

PORTS = """
import socket
from pathlib import Path

Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("50046 50055")
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(5)]
print("free ports", max(each.getsockname()[1] for each in held))
"""
"""Prints the last port that connections of a machine use which has few."""


@pytest.fixture(autouse=True)
def network(machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return make_network(tmp_path)


@pytest.mark.parametrize("target", ["virtual", *TARGETS])
def test_the_same_frames_at_the_same_hosts(tmp_path: Path, target: str) -> None:
    """Of two senders at a time, beside flows and pings, which all arrive."""
    senders = ("h1", "h4")
    for sender in senders:
        write_capture(tmp_path / f"{sender}.pcap", frames_of(sender), 0.01)
    replays = [f"replay:host={sender},file={sender}.pcap" for sender in senders]
    result = tailrace.run(
        scheme=SCHEME,
        topology=TOPOLOGY,
        workload=" + ".join([*replays, "ping:count=2,interval=50ms", "permutation:size=10KiB"]),
        target=target,
        out=tmp_path / "out",
    )
    both = [expected(sender) for sender in senders]
    assert arrived(tmp_path / "out") == {
        host: sorted(frame for each in both for frame in each.get(host, ())) for host in HOSTS
    }
    assert result.complete
    assert result.summary.pings.received == result.summary.pings.sent  # type: ignore[union-attr]


def at_the_prompt(folder: Path, target: str, workload: str, *lines: str) -> str:
    """What a user sees who types these lines, with a python3 of his own, then exit."""
    python = folder / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\necho the python of the user\nexec {sys.executable} "$@"\n')
    python.chmod(0o700)
    words = ["run", "--program", "basic_l3.json", "--topology", TOPOLOGY, "--target", target, "--cli"]
    done = subprocess.run(
        [sys.executable, "-m", "tailrace.cli.main", *words, "--workload", workload, *QUICK],
        input="\n".join([*lines, "exit", ""]),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={
            **os.environ,
            "XDG_RUNTIME_DIR": str(folder),
            "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        },
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def write_controller(text: str) -> None:
    Path("controller.py").write_text(text)
    Path("controller.py").chmod(0o700)


@pytest.mark.parametrize("target", [TARGETS[0], *more(*TARGETS[1:])])
def test_a_controller_attaches(tmp_path: Path, target: str) -> None:
    """The switches begin without entries, and the workload ends without success; afterwards it and the hosts'
    kernels find each other. Ports of the switches stay free for them, and the user's scripts send from the
    host's address.
    """
    Path("topology.json").write_text(json.dumps(topology()))
    Path("ports.py").write_text(PORTS)
    Path("source.py").write_text("from scapy.layers.inet import IP\nprint('from', IP(dst='10.0.2.3').src)")
    write_controller(WRITES)
    ping = f"h1 ping -c1 -W1 {HOSTS['h3']}"
    shown = at_the_prompt(
        tmp_path,
        target,
        "permutation:size=10KiB",
        *(
            "traffic",
            ping,
            "sh ./controller.py",
            ping,
            "h1 ip route",
            "h1 python3 source.py",
            "sh python3 ports.py",
        ),
        "traffic",
    )
    assert re.findall(r"1 packets transmitted, ([01]) received", shown) == ["0", "1"]
    assert re.findall("([04]) of 4 flows are complete", shown) == ["0", "4"]
    assert shown.count("the python of the user") == 3
    assert "default via 10.0.1.254" in shown and f"from {HOSTS['h1']}" in shown
    assert "free ports 50050" in shown
    assert Path("out/summary.json").exists()


@pytest.mark.parametrize("target", [TARGETS[0], *more(*TARGETS[1:])])
def test_packets_pass_through_a_controller(tmp_path: Path, target: str) -> None:
    """From the CPU port of topology.json, and back to the host that the controller chooses. The hosts' kernels are
    silent only during the traffic.
    """
    Path("topology.json").write_text(json.dumps(topology(s1={"cpu_port": "510"})))
    copy_program(tmp_path / "basic_l3.json", "packet_io")
    frames = [Ether(src=MACS["h1"], dst=MACS["h3"], type=0x88B5) / Raw(bytes([n] * 50)) for n in range(5)]
    write_capture(tmp_path / "h1.pcap", frames)
    write_controller(FORWARDS)
    ping = "h1 ping -c1 -W1 h2"
    shown = at_the_prompt(
        tmp_path,
        target,
        "replay:host=h1,file=h1.pcap",
        *(ping, "sh ./controller.py &", "sh until test -e ready; do sleep 0.1; done", "traffic", ping),
    )
    assert arrived(tmp_path / "out") == {"h2": sorted(map(bytes, frames))}
    assert shown.count(f"PING {HOSTS['h2']}") == 2
