"""A fabric under Mininet: traffic, faults, captures, the prompt."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import pty
import re
from pathlib import Path
from typing import Any

from scapy.layers.inet import UDP
from scapy.utils import PcapReader

from tests.mininet.conftest import Harness

FLOW_BYTES = 50_000
PROMPT = "mininet> "


def flow(number: int, src: str, dst: str, size: int = FLOW_BYTES) -> dict[str, Any]:
    """A flow that starts at once."""
    return {
        "id": number,
        "src": src,
        "dst": dst,
        "bytes": size,
        "start_ns": 0,
        "qpn": number + 1,
        "sport": 50000 + number,
    }


def result(harness: Harness) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((harness.out / "RESULT.json").read_text())
    return document


def test_flows_cross_the_fabric_and_nothing_stays(harness: Harness) -> None:
    """Two flows over the spines are complete, counted by the switches and captured; then all is gone."""
    pcaps = harness.out / "pcap"
    flows = [flow(0, "10.0.1.2", "10.0.2.2"), flow(1, "10.0.2.3", "10.0.1.3")]
    done = harness.run(harness.job(flows=flows, pcap_dir=str(pcaps)))
    assert (done.returncode, done.stderr) == (0, "")
    phases = [json.loads(line)["phase"] for line in done.stdout.splitlines() if "phase" in line]
    assert phases[:5] == ["compile", "fabric", "controller", "hosts", "traffic"]
    document = result(harness)
    assert [record["end_ns"] is not None for record in document["flows"]] == [True, True]
    assert set(document["switches"]) == {"leaf1", "leaf2", "spine1", "spine2"}
    packets = sum(record["packets"] for record in document["flows"])
    spines = document["switches"]["spine1"]["port_tx"] + document["switches"]["spine2"]["port_tx"]
    assert spines >= packets >= 2 * FLOW_BYTES // 1024
    assert {path.name for path in pcaps.iterdir()} == {
        f"{link}.pcap"
        for link in (
            *("h1-leaf1", "h2-leaf1", "h3-leaf2", "h4-leaf2"),
            *("leaf1-spine1", "leaf1-spine2", "leaf2-spine1", "leaf2-spine2"),
        )
    }
    assert frames(pcaps / "h1-leaf1.pcap") >= FLOW_BYTES // 1024
    assert harness.left_behind() == []


def frames(path: Path) -> int:
    """RoCE frames of a capture, in either direction."""
    with PcapReader(str(path)) as reader:
        return sum(1 for packet in reader if UDP in packet and packet[UDP].dport == 4791)


def test_a_link_that_goes_down_is_routed_around(harness: Harness) -> None:
    """A link is down from the start on: the controller says so and the flows get through."""
    flows = [flow(number, "10.0.1.2", "10.0.2.2") for number in range(4)]
    fault = {"kind": "link-down", "a": "spine1", "b": "leaf1", "at_ns": 0, "until_ns": None}
    done = harness.run(harness.job(flows=flows, faults=[fault]))
    assert (done.returncode, done.stderr) == (0, "")
    assert "leaf1-spine1 is down" in done.stdout
    assert all(record["end_ns"] is not None for record in result(harness)["flows"])
    assert harness.left_behind() == []


class Terminal:
    """The user's side of a pseudo-terminal."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        self.text = ""

    def until(self, words: str) -> str:
        """Reads until the words appear; what came before them."""
        while words not in self.text:
            self.text += os.read(self.master, 4096).decode(errors="replace")
        before, _, self.text = self.text.partition(words)
        return before

    def type(self, line: str) -> str:
        """Types a line at the prompt; what is printed until the next prompt."""
        os.write(self.master, f"{line}\n".encode())
        return self.until(PROMPT)

    def close(self) -> None:
        os.close(self.master)
        os.close(self.slave)


def test_the_prompt(harness: Harness) -> None:
    """Hosts reach each other by their own stacks, links fail and come back, flows run and can be interrupted,
    `exit` ends all."""
    terminal = Terminal()
    job = harness.job(flows=[flow(0, "10.0.1.2", "10.0.2.2")])
    ends = {"stdin": terminal.slave, "stdout": terminal.slave, "stderr": terminal.slave}
    # the pseudo-terminal controls the session, so that Control-C is a signal
    process = harness.start(job, before=["setsid", "--ctty"], more=["--prompt"], **ends)
    try:
        terminal.until(PROMPT)
        assert "3 received, 0% packet loss" in terminal.type("h1 ping -c3 -i0.2 h4")
        assert "0% dropped" in terminal.type("pingall")
        assert "no link between leaf1 and leaf2" in terminal.type("link leaf1 leaf2 down")
        terminal.type("link leaf1 spine1 down")
        assert "state DOWN" in terminal.type("sh ip link show leaf1-eth3")
        terminal.type("link leaf1 spine1 up")
        assert "state UP" in terminal.type("sh ip link show leaf1-eth3")
        os.write(terminal.master, b"h1 ping h4\n")
        terminal.until("icmp_seq=2")
        os.write(terminal.master, b"\x03")
        terminal.until(PROMPT)
        os.write(terminal.master, b"traffic\n")
        terminal.until("hosts")
        os.write(terminal.master, b"\x03")
        terminal.until(PROMPT)
        assert "1 of 1 flows are complete" in terminal.type("traffic")
        assert re.search(r"[1-9][\d.]* Mbits/sec", terminal.type("iperf h1 h3"))
        os.write(terminal.master, b"exit\n")
        assert process.wait() == 0
    finally:
        terminal.close()
    assert harness.left_behind() == []
