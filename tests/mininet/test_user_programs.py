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

import tailrace
from tailrace.bmv2.process import EXECUTABLE
from tests.long import more
from tests.user_programs.network import (
    HOSTS,
    TOPOLOGY,
    arrived,
    expected,
    frames_of,
    make_network,
    topology,
    write_capture,
)

TARGETS = ("native", *(("bmv2",) if shutil.which(EXECUTABLE) else ()))
SCHEME = "program:json=basic_l3.json"

CONTROLLER = """
import queue
import grpc
from pathlib import Path
from finsy.proto import p4r, p4r_grpc
from tailrace.p4rt import programs
from tailrace.p4rt.entry_files import read_updates

program = programs.read(Path("basic_l3.json"))
for device_id, switch in enumerate(("s1", "s2")):
    channel = grpc.insecure_channel(f"127.0.0.1:{50051 + device_id}")
    stub, requests = p4r_grpc.P4RuntimeStub(channel), queue.Queue()
    request = p4r.StreamMessageRequest()
    request.arbitration.device_id, request.arbitration.election_id.low = device_id, 1
    requests.put(request)
    responses = stub.StreamChannel(iter(requests.get, None))
    assert next(responses).arbitration.status.code == 0
    write = p4r.WriteRequest(device_id=device_id, updates=read_updates(Path(f"{switch}-runtime.json"), program))
    write.election_id.low = 1
    stub.Write(write)
    requests.put(None)
"""
"""With the addresses, device ids and election id of the tutorials' p4runtime_lib."""


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


@pytest.mark.parametrize("target", [TARGETS[0], *more(*TARGETS[1:])])
def test_a_controller_attaches(tmp_path: Path, target: str) -> None:
    """The switches begin without entries; the hosts' kernels and the workload find each other afterwards."""
    Path("topology.json").write_text(json.dumps(topology()))
    Path("controller.py").write_text(CONTROLLER)
    words = ["run", "--program", "basic_l3.json", "--topology", TOPOLOGY, "--target", target, "--cli"]
    lines = (f"h1 ping -c1 -W1 {HOSTS['h3']}", f"sh {sys.executable} controller.py")
    typed = "\n".join([*lines, lines[0], "traffic", "exit", ""])
    done = subprocess.run(
        [sys.executable, "-m", "tailrace.cli.main", *words, "--workload", "permutation:size=10KiB"],
        input=typed,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    shown = done.stdout + done.stderr
    assert re.findall(r"1 packets transmitted, ([01]) received", shown) == ["0", "1"]
    assert "4 of 4 flows are complete" in shown
    assert Path("out/summary.json").exists()
