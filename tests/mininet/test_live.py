"""A fabric in Mininet that is looked at and changed from another terminal."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from scapy.layers.inet import ICMP
from scapy.utils import PcapReader

from tests.eventually import LONG_S, eventually
from tests.mininet.conftest import ROOT, Harness
from tests.mininet.test_runs import PROMPT, Terminal, flow

ROUTE = {
    "table": "ipv4_routes",
    "match": {"dst": ["10.0.9.0", 24]},
    "action_name": "to_host",
    "action_params": {"port": 1, "dst_mac": "02:00:0a:00:09:02"},
}


class Other:
    """The other terminal."""

    def __init__(self, harness: Harness) -> None:
        self._environment = {**os.environ, "XDG_RUNTIME_DIR": str(harness.runtime), "PYTHONPATH": str(ROOT)}

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tailrace.cli.main", *words]
        pipe = subprocess.PIPE
        # a shell that starts the tests in the background has them ignore Control-C
        return subprocess.Popen(
            command,
            env=self._environment,
            text=True,
            stdout=pipe,
            stderr=pipe,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def fails(self, *words: str) -> str:
        """The one line of a command that fails."""
        process = self.start(*words)
        out, err = process.communicate(timeout=LONG_S)
        assert (process.returncode != 0, out, err.count("\n")) == (True, "", 1), err
        return err

    def runs(self, *words: str) -> str:
        """What a command writes."""
        process = self.start(*words)
        out, err = process.communicate(timeout=LONG_S)
        assert (process.returncode, err) == (0, ""), err
        return out


def round_trip_ms(text: str) -> float:
    """Of a ping that one packet answers."""
    (found,) = re.findall(r"time=([\d.]+) ms", text)
    return float(found)


def test_another_terminal(harness: Harness, tmp_path: Path) -> None:
    """Links go down and slow and come back, packets are captured, events are followed, entries are written beside the
    controller; the result says what was changed, and nothing stays."""
    terminal, other = Terminal(), Other(harness)
    job = harness.job(flows=[flow(0, "10.0.1.2", "10.0.2.2")])
    ends = {"stdin": terminal.slave, "stdout": terminal.slave, "stderr": terminal.slave}
    process = harness.start(job, before=["setsid", "--ctty"], more=["--prompt"], **ends)
    try:
        terminal.until(PROMPT)
        (network,) = json.loads(other.runs("ls", "-o", "json"))
        assert (network["target"], network["state"], network["down"]) == ("native", "running", [])
        assert (network["switches"], network["hosts"], network["links"]) == (4, 4, 8)
        assert "h1-leaf1" in terminal.type("sh tailrace ls --show links")

        follower = other.start("events", "--follow", "-o", "jsonl")
        other.runs("link", "down", "leaf1-spine1")
        rows = {row["link"]: row for row in json.loads(other.runs("ls", "--show", "links", "-o", "json"))}
        assert {name for name, row in rows.items() if row["state"] == "down"} == {"leaf1-spine1"}
        assert "state DOWN" in terminal.type("sh ip link show leaf1-eth3")
        terminal.type("link leaf2 spine1 down")
        assert eventually(lambda: "leaf1-spine1: link down" in other.runs("events"))
        assert "0% packet loss" in terminal.type("h1 ping -c2 -i0.2 h4")
        other.runs("link", "up", "spine1-leaf1")
        terminal.type("link leaf2 spine1 up")
        assert eventually(lambda: "leaf1-spine1: link up" in other.runs("events"))

        quick = round_trip_ms(terminal.type("h1 ping -c1 -s1000 h4"))
        for spine in ("spine1", "spine2"):
            other.runs("link", "rate", f"leaf1-{spine}", "20Mbps")  # 20 kbit/s, as the time scale is 1000
        slow = round_trip_ms(terminal.type("h1 ping -c1 -s1000 -W9 h4"))
        assert slow > 300 > quick  # 1042 bytes take 417 ms
        rows = {row["link"]: row for row in json.loads(other.runs("ls", "--show", "links", "-o", "json"))}
        assert rows["leaf1-spine2"]["rate"] == "20Mbps"
        other.runs("link", "rate", "leaf1-spine1", "10Gbps")

        file = tmp_path / "link.pcap"
        capture = other.start("capture", "h1-leaf1", "--out", str(file))
        assert eventually(lambda: file.exists() and file.stat().st_size == 24)
        terminal.type("h1 ping -c3 -i0.2 h2")
        assert eventually(lambda: pings(file) == 6)
        capture.send_signal(signal.SIGINT)
        assert capture.communicate(timeout=LONG_S) == ("", "")
        assert capture.returncode == 0
        assert pings(file) == 6

        entry = json.dumps(ROUTE)
        assert "INSERT" in other.runs("write", "leaf1", entry, "--dry-run")
        assert other.runs("write", "leaf1", entry) == "leaf1: 1 written\n"
        assert "10.0.9.0/24" in other.runs("tables", "leaf1", "ipv4_routes")
        assert other.runs("delete", "leaf1", entry) == "leaf1: 1 deleted\n"
        assert "no differences" in other.start("diff", "leaf1").communicate(timeout=LONG_S)[1]

        assert "no link 'leaf1-leaf2'" in other.fails("link", "down", "leaf1-leaf2")
        assert "the rate of a NIC is fixed" in other.fails("link", "rate", "h1-leaf1", "1Gbps")
        assert "1 of 1 flows are complete" in terminal.type("traffic")
        document = json.loads((harness.out / "RESULT.json").read_text())
        assert document["applied"]["changed"] == ["leaf1-spine2 has 20Mbps, by command"]
        os.write(terminal.master, b"exit\n")
        assert process.wait() == 0
        out, _ = follower.communicate(timeout=LONG_S)
        texts = [json.loads(line)["text"] for line in out.splitlines()]
        assert texts[0] == "leaf1-spine1 is down, by command"
        assert "leaf1-spine1: link up" in texts and texts[-1] == "leaf1-spine1 has 10Gbps, by command"
        assert "no network of yours is running" in other.fails("ls")
    finally:
        terminal.close()
    assert harness.left_behind() == []


def pings(file: Path) -> int:
    """ICMP packets of a capture."""
    with PcapReader(str(file)) as reader:
        return sum(1 for packet in reader if ICMP in packet)


def test_a_link_that_slows_down_in_the_middle(harness: Harness) -> None:
    """The native switch sets rates while it runs: a flow over slow links takes longer, and as long as before when they
    are slow only afterwards."""
    times = []
    for at_ns in (0, 3_600_000_000_000):
        faults = [
            {"kind": "link-slow", "a": "leaf1", "b": spine, "factor": 0.05, "at_ns": at_ns, "until_ns": None}
            for spine in ("spine1", "spine2")
        ]
        done = harness.run(harness.job(flows=[flow(0, "10.0.1.2", "10.0.2.2")], faults=faults))
        assert (done.returncode, done.stderr) == (0, "")
        (record,) = json.loads((harness.out / "RESULT.json").read_text())["flows"]
        times.append(record["end_ns"] - record["start_ns"])
    # 50 kB at 0.5 Mbit/s take 0.8 s, at 10 Mbit/s 0.04 s
    assert times[0] > 700_000_000 > times[1]
