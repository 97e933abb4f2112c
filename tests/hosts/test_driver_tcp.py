# SPDX-License-Identifier: Apache-2.0
"""Flows over the kernel's own TCP: from namespace to namespace, what is measured, and what is refused."""

from __future__ import annotations

import json
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether

from tailrace.hosts.driver import tcp_run
from tailrace.hosts.driver.__main__ import main
from tailrace.hosts.driver.tcp_flow import TIMESTAMPS_BYTES
from tailrace.hosts.driver.tcp_info import NOTHING, TcpInfo, decode
from tailrace.hosts.driver.tcp_tap import TcpTap, data_of
from tailrace.hosts.gaps.histogram import GapHistogram
from tests import shaping
from tests.hosts.test_driver import MS, Namespace, driver, event, job, pair, start

__all__ = ["pair"]

SPACES = pytest.mark.usefixtures("pair")
MTU_BYTES = 1000
RATE_BPS = 20_000_000
FRAME_BYTES = MTU_BYTES + TIMESTAMPS_BYTES + 14 + 20 + 20


def addressed(pair: tuple[Namespace, Namespace]) -> tuple[Namespace, Namespace]:
    """The pair with addresses for its own stacks, segments cut by them, and a rate."""
    reason = shaping.why_not()
    if reason is not None:
        pytest.skip(reason)
    for number, (space, name) in enumerate(zip(pair, ("a0", "b0"), strict=True), 1):
        space.run("ip", "address", "add", f"10.0.0.{number}/24", "dev", name)
        for offload in ("tx", "sg", "tso", "gso", "gro"):
            space.run("ethtool", "-K", name, offload, "off")
        shaper = ["tbf", "rate", f"{RATE_BPS}bit", "burst", f"{FRAME_BYTES}b", "limit", "1000000b"]
        space.run("tc", "qdisc", "add", "dev", name, "root", *shaper)
    return pair


def flow(number: int, src: int, length_bytes: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": number,
        "src": f"10.0.0.{src}",
        "dst": f"10.0.0.{3 - src}",
        "bytes": length_bytes,
        "start_ns": 0,
        "qpn": number,
        "sport": 50_000 + number,
        **changes,
    }


def tcp_job(spaces, tmp_path: Path, flows: list[dict[str, Any]], **changes: Any) -> Path:
    nic = {"mtu_bytes": MTU_BYTES, "measure_gaps": True}
    return job(spaces, tmp_path, **{"flows": flows, "nic": nic, "kernel_tcp": "reno", **changes})


def test_flows_arrive_and_gaps_are_those_of_the_link(pair, tmp_path):
    """Both ways, and one after the others; every packet but a flow's first ends a gap; and not above the rate."""
    flows = [flow(0, 1, 100_000), flow(1, 2, 1), flow(2, 2, 30_000, after=[0, 1], start_ns=MS)]
    with driver(tcp_job(addressed(pair), tmp_path, flows)) as process:
        start(process)
        while (said := event(process))["event"] == "progress":
            pass
        assert {"event": "done", "unfinished": 0} == said
        assert 0 == process.wait()
    found = json.loads((tmp_path / "result.json").read_text())
    one, tiny, last = found["flows"]
    assert [0, 1, 2] == [record["id"] for record in found["flows"]]
    # the kernel may cut a segment short, or probe the end of a flow
    for record, least in ((one, 100), (tiny, 1), (last, 30)):
        assert record["packets"] >= record["received"] >= least
    assert last["start_ns"] >= max(one["end_ns"], tiny["end_ns"])
    assert last["end_ns"] > last["start_ns"]
    sent = sum(record["packets"] for record in found["flows"])
    assert sent - 3 == sum(count for _, count in found["gaps"])
    # 100 packets at the link's rate, of which the bucket lets the first one go at once
    assert one["end_ns"] - one["start_ns"] >= 98 * FRAME_BYTES * 8_000_000_000 // RATE_BPS
    assert {"out_of_order", "path_changes"} <= set(found["unobserved"])
    assert [] == found["learned"]


def test_the_next_run_finds_the_ports_free(pair, tmp_path):
    """Nothing of a connection stays in the kernel."""
    path = tcp_job(addressed(pair), tmp_path, [flow(0, 1, 5_000)], wait_for_start=False)
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-m", "tailrace.hosts.driver", str(path)], capture_output=True, check=False
        )
        assert (0, b"") == (done.returncode, done.stderr)


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"kernel_tcp": "carrier"}, 1, "this kernel has no congestion control 'carrier'"),
        ({"flows": [flow(0, 1, 1, dst="10.0.0.9")]}, 2, "flow 0: 10.0.0.1 and 10.0.0.9 are not both hosts"),
        ({"flows": [flow(0, 1, 1, after=[7])]}, 2, "flow 0: it comes after flow 7, which there is none of"),
    ],
)
def test_refusals(pair, tmp_path, capsys, changes, code, message):
    """One line, and the exit code."""
    path = tcp_job(addressed(pair), tmp_path, **{"flows": [flow(0, 1, 1)], **changes})
    assert code == main([str(path)])
    error = capsys.readouterr().err
    assert message in error
    assert 1 == error.count("\n")


def test_two_flows_of_the_same_ends_and_port(pair, tmp_path):
    """TCP tells them apart by the destination's port."""
    flows = [flow(0, 1, 20_000), flow(1, 1, 20_000, sport=50_000)]
    path = tcp_job(addressed(pair), tmp_path, flows, wait_for_start=False)
    assert 0 == main([str(path)])
    found = json.loads((tmp_path / "result.json").read_text())
    assert all(record["end_ns"] for record in found["flows"])
    sent = sum(record["packets"] for record in found["flows"])
    assert sent - 2 == sum(count for _, count in found["gaps"]) >= 38


def test_a_connection_that_cannot_be_made(pair, tmp_path, capsys, monkeypatch):
    """It is given up, and told of."""
    here, there = addressed(pair)
    there.run("ip", "link", "set", "dev", "b0", "down")
    monkeypatch.setattr(tcp_run, "CONNECT_S", 1.0)
    assert 1 == main([str(tcp_job((here, there), tmp_path, [flow(5, 1, 1)]))])
    error = capsys.readouterr().err
    assert "flow 5: " in error
    assert 1 == error.count("\n")


def test_a_signal_ends_it(pair, tmp_path):
    """What has been seen until then is written."""
    with driver(tcp_job(addressed(pair), tmp_path, [flow(0, 1, 900_000_000)])) as process:
        start(process)
        while event(process)["event"] != "progress":
            pass
        process.send_signal(signal.SIGINT)
        while (said := event(process))["event"] == "progress":
            pass
        assert {"event": "failed", "text": "ended by SIGINT"} == said
        assert 128 + signal.SIGINT == process.wait()
    found = json.loads((tmp_path / "result.json").read_text())
    assert (signal.SIGINT, 1, None) == (found["ended_by"], found["unfinished"], found["flows"][0]["end_ns"])
    assert found["flows"][0]["packets"] > 0


# ---- without a network ----


def segment(payload: int, *, sport: int = 1000, dport: int = 2000, options: bool = False) -> bytes:
    tcp = TCP(sport=sport, dport=dport, options=[("Timestamp", (1, 2))] if options else [])
    return bytes(Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / tcp / bytes(payload))


def test_data_is_what_has_a_payload():
    """Whatever its options are; acknowledgments, datagrams and what was cut short are none."""
    ends = (bytes([10, 0, 0, 2]), 1000, 2000)
    assert (ends, 7) == data_of(segment(7))
    assert (ends, 1400) == data_of(segment(1400, options=True)[:80])
    assert data_of(segment(0)) is None
    assert data_of(segment(0, options=True)) is None
    assert data_of(bytes(Ether() / IP() / UDP() / bytes(90))) is None
    assert data_of(segment(9)[:40]) is None
    assert data_of(b"") is None


@SPACES
def test_gaps_are_within_a_flow(pair):
    """Not between packets of different ones; packets of nobody's and acknowledgments do not count."""
    here, _ = pair
    destination = bytes([10, 0, 0, 2])
    tap = TcpTap("a0", here.path, {(destination, 1000, 2000): 1, (destination, 1001, 2000): 2}, 100)
    try:
        for time_ns, sport, payload in (
            (0, 1000, 100), (10, 1001, 100), (20, 1000, 0), (50, 1000, 50), (51, 1002, 100), (90, 1001, 101),
        ):  # fmt: skip
            tap.on_frame(time_ns, segment(payload, sport=sport))
        expected = GapHistogram()
        for gap_ns in (50, 80):
            expected.add(gap_ns)
        assert expected.bins() == tap.gaps.bins()
        assert 1 == tap.uncut
    finally:
        tap.close()


def test_what_a_kernel_does_not_tell_is_not_known():
    """The structure grows with the kernel; what is beyond its end nobody has counted."""
    words = list(range(100, 180))
    answer = b"\0" * 8 + struct.pack("=80I", *words)
    assert NOTHING == decode(b"")
    old = decode(answer[:160])
    assert (TcpInfo(123, 136, 137, None, None)) == old
    assert TcpInfo(123, 136, 137, 154, 158) == decode(answer)
