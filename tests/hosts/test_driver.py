# SPDX-License-Identifier: Apache-2.0
"""The real-time driver, on interfaces in namespaces that the test makes itself, and its refusals."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.hosts.driver.__main__ import main
from tailrace.hosts.driver.packet_socket import PacketSocket, namespace_path
from tailrace.hosts.driver.port import Lag
from tailrace.hosts.options.hf2t import Hf2tConfig
from tailrace.hosts.options.nic import FlowcutNicConfig, NicConfig, SteeringConfig
from tests.codec.frames import Ack, Data, parse

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
ROOT = Path(__file__).resolve().parents[2]
MS = 1_000_000
PATHS = {"evs": [257, 258], "latencies_ps": [1000, 2000], "weights": [2.0, 1.0]}
STEERED = dataclasses.asdict(NicConfig(transport="dctcp", rto_ns=5000 * MS, steering=SteeringConfig("ops")))
# Far longer than anything here takes: a machine that is busy with other things fails no test.
PATIENCE_S = 60


class Namespace:
    """A network namespace without a name: gone with the last descriptor."""

    def __init__(self) -> None:
        namespace = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            if LIBC.unshare(CLONE_NEWNET) != 0:
                pytest.skip("network namespaces are not available here (root is needed)")
            self.descriptor = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
            LIBC.setns(namespace, CLONE_NEWNET)
        finally:
            os.close(namespace)

    @property
    def path(self) -> str:
        return f"/proc/{os.getpid()}/fd/{self.descriptor}"

    def run(self, *words: str) -> None:
        done = subprocess.run(
            ["nsenter", f"--net={self.path}", *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


@pytest.fixture
def pair() -> Iterator[tuple[Namespace, Namespace]]:
    """Two namespaces, each with one end of a veth pair: a0 here, b0 there."""
    here, there = Namespace(), Namespace()
    try:
        here.run("ip", "link", "add", "a0", "type", "veth", "peer", "name", "b0", "netns", there.path)
        for space, name in ((here, "a0"), (there, "b0")):
            # no router solicitations and other talk of the kernel
            space.run("sh", "-c", f"echo 1 > /proc/sys/net/ipv6/conf/{name}/disable_ipv6 || true")
            space.run("ip", "link", "set", "dev", name, "up")
        yield here, there
    finally:
        os.close(here.descriptor)
        os.close(there.descriptor)


def host(number: int, interface: str, netns: str | None, **changes) -> dict:
    return {
        "name": f"h{number}",
        "interface": interface,
        "netns": netns,
        "ip": f"10.0.0.{number}",
        "mac": f"02:00:0a:00:00:0{number}",
        "gateway_mac": "02:00:00:00:00:fe",
        "rate_bps": 40_000_000,
        **changes,
    }


def flows(count: int, length_bytes: int) -> list[dict]:
    ends = [("10.0.0.1", "10.0.0.2"), ("10.0.0.2", "10.0.0.1")]
    return [
        {
            "id": n,
            "src": ends[n % 2][0],
            "dst": ends[n % 2][1],
            "bytes": length_bytes,
            "start_ns": n * MS,
            "qpn": n,
            "sport": 3000 + n,
        }
        for n in range(count)
    ]


def job(spaces, tmp_path: Path, **changes) -> Path:
    here, there = (spaces[0].path, spaces[1].path) if spaces else (None, None)
    content = {
        "hosts": [host(1, "a0", here, delay_ns=MS), host(2, "b0", there)],
        "flows": flows(4, 100_000),
        "nic": dataclasses.asdict(NicConfig(rto_ns=5000 * MS, pause_timeout_ns=10_000 * MS)),
        "result": str(tmp_path / "result.json"),
        **changes,
    }
    path = tmp_path / "job.json"
    path.write_text(json.dumps({name: value for name, value in content.items() if value != "absent"}))
    return path


@contextlib.contextmanager
def driver(path: Path) -> Iterator[subprocess.Popen[str]]:
    """The driver as a process of its own, ended in any case."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tailrace.hosts.driver", str(path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def event(process: subprocess.Popen[str]) -> dict:
    assert process.stdout is not None
    said: dict = json.loads(process.stdout.readline())
    return said


def start(process: subprocess.Popen[str]) -> None:
    assert {"event": "ready"} == event(process)
    assert process.stdin is not None
    process.stdin.write("start\n")
    process.stdin.flush()
    assert {"event": "started"} == event(process)


@pytest.mark.parametrize("flowcut", [None, FlowcutNicConfig(age_ns=4000 * MS)])
def test_flows_run_between_namespaces(pair, tmp_path, flowcut):
    """Both ends in one process, each in its namespace; real frames, no reordering, every byte."""
    nic = dataclasses.asdict(NicConfig(rto_ns=5000 * MS, pause_timeout_ns=10_000 * MS, flowcut_nic=flowcut))
    with driver(job(pair, tmp_path, nic=nic, progress_ns=10 * MS)) as process:
        start(process)
        out, err = process.communicate(timeout=PATIENCE_S)
    said = [json.loads(line) for line in out.splitlines()]
    assert ("", 0) == (err, process.returncode)
    assert {"event": "done", "unfinished": 0} == said[-1]
    assert {"progress"} == {line["event"] for line in said[:-1]}
    result = json.loads((tmp_path / "result.json").read_text())
    assert [0, 1, 2, 3] == [record["id"] for record in result["flows"]]
    for record in result["flows"]:
        # at 40 Mb/s a payload of 100 kB takes 20 ms and more, and the loop keeps the link's rate and delay
        assert record["end_ns"] - record["start_ns"] >= 100_000 * 8 * 1000 // 40
        assert (0, 0) == (record["out_of_order"], record["retransmitted"])
        assert record["packets"] == record["received"] == 98
    assert 0 == result["unfinished"]
    assert {"h1", "h2"} == set(result["counters"])


def test_hf2t_in_real_time(pair, tmp_path):
    """Every gap is as long as the threshold, however late the loop is; T and all gaps are told of."""
    hf2t = Hf2tConfig(2 * MS, 9_900, 20, 80, 100, tick_ns=1_000, margin_ns=MS, t_ns=1, dynamic=False)
    nic = dataclasses.asdict(NicConfig(rto_ns=5000 * MS, hf2t=hf2t, measure_gaps=True))
    with driver(job(pair, tmp_path, nic=nic)) as process:
        start(process)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert ("", 0) == (err, process.returncode)
    result = json.loads((tmp_path / "result.json").read_text())
    assert [97] * 4 == [record["stretched"] + record["natural"] for record in result["flows"]]
    assert all(record["stretched"] > 0 for record in result["flows"])
    assert [{"t_ns": 1, "trainings": 0}] * 2 == result["learned"]
    lows, counts = zip(*result["gaps"], strict=True)
    assert (4 * 97, sorted(lows)) == (sum(counts), list(lows))
    # by themselves gaps are 0.22 ms at the link's rate
    assert lows[0] > 2 * MS * (1 - 1 / 128)


def test_hosts_steer_by_their_path_lists(pair, tmp_path):
    """Packets take the entropy values of the list to their destination, and nothing else."""
    here, there = (space.path for space in pair)
    hosts = [
        host(1, "a0", here, paths={"10.0.0.2": PATHS}),
        host(2, "b0", there, paths={"10.0.0.1": {**PATHS, "evs": [513, 514]}}),
    ]
    with contextlib.closing(PacketSocket("b0", there)) as tap:
        with driver(job(pair, tmp_path, hosts=hosts, nic=STEERED)) as process:
            start(process)
            _, err = process.communicate(timeout=PATIENCE_S)
        assert ("", 0) == (err, process.returncode)
        said = [parse(frame) for frame in iter(tap.receive, None)]
    result = json.loads((tmp_path / "result.json").read_text())
    assert all(record["end_ns"] is not None for record in result["flows"])
    assert {257, 258} == {packet.sport for packet in said if isinstance(packet, Data)}
    # h1's answers echo what h2 has drawn
    assert {513, 514} == {packet.sport for packet in said if isinstance(packet, Ack)}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("started", [False, True])
def test_signals_end_it_cleanly(pair, tmp_path, number, started):
    """No traceback; what was found until then is written."""
    endless = [{**flows(1, 1)[0], "bytes": 2**32 - 1}]
    with driver(job(pair, tmp_path, flows=endless, progress_ns=MS)) as process:
        if started:
            start(process)
            assert "progress" == event(process)["event"]
        else:
            assert {"event": "ready"} == event(process)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert ("", 128 + number) == (err, process.returncode)
    assert {"event": "failed", "text": f"ended by {number.name}"} == json.loads(out.splitlines()[-1])
    result = json.loads((tmp_path / "result.json").read_text())
    assert (1, int(number)) == (result["unfinished"], result["ended_by"])


def test_unfinished_flows_are_told_of(pair, tmp_path):
    """A far end that is not there: the run ends at its timeout, exit 1."""
    changes = {"hosts": [host(1, "a0", pair[0].path)], "flows": flows(1, 5000), "timeout_ns": 50 * MS}
    with driver(job(pair, tmp_path, **changes)) as process:
        start(process)
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert {"event": "done", "unfinished": 1} == json.loads(out.splitlines()[-1])
    assert 1 == process.returncode
    (record,) = json.loads((tmp_path / "result.json").read_text())["flows"]
    assert record["end_ns"] is None


def test_an_interface_that_goes_away_is_one_line(pair, tmp_path):
    """Exit 1, and the line names it."""
    endless = [{**flows(1, 1)[0], "bytes": 2**32 - 1}]
    with driver(job(pair, tmp_path, flows=endless)) as process:
        start(process)
        pair[0].run("ip", "link", "del", "a0")
        _, err = process.communicate(timeout=PATIENCE_S)
    assert 1 == process.returncode
    assert err.startswith("hosts.driver: interface ")
    assert 1 == err.count("\n")


def test_a_machine_that_is_too_slow_is_told_of(pair, tmp_path):
    """Any lateness at all is an overload when none is allowed."""
    with driver(job(pair, tmp_path, overload_lag_ns=0)) as process:
        start(process)
        process.communicate(timeout=PATIENCE_S)
    result = json.loads((tmp_path / "result.json").read_text())
    assert any("frames left" in reason for reason in result["overload"])


def refuse(path: Path, capsys) -> tuple[int, str]:
    """Exit code and the line of a job that cannot be run."""
    code = main([str(path)])
    out, err = capsys.readouterr()
    assert err.startswith("hosts.driver: ")
    assert 1 == err.count("\n")
    assert "failed" == json.loads(out)["event"]
    return code, err


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"hosts": []}, "hosts: expected at least one host"),
        ({"flows": "absent"}, "flows: missing"),
        ({"speed": 1}, "speed: unknown key"),
        ({"nic": {"mtu": 9}}, "nic.mtu: unknown key"),
        ({"nic": {"mtu_bytes": 0}}, "mtu_bytes is 0, expected 1..9000"),
        ({"nic": {"virtual_payload": True}}, "virtual_payload is for virtual time only"),
        ({"nic": {"flowcut_nic": {"age": 1}}}, "nic.flowcut_nic.age: unknown key"),
        ({"nic": {"hf2t": {"percentile": 9_900}}}, "nic.hf2t.threshold_ns: missing"),
        ({"flows": [{**flows(1, 1)[0], "after": [9]}]}, "it comes after flow 9, which does not exist"),
        ({"hosts": [host(1, "a0", None, rate_bps=0)]}, "hosts[0].rate_bps: expected bits a second"),
        ({"hosts": [host(1, "a0", None, ip="10.0.0.256")]}, "hosts[0].ip: expected an IPv4 address"),
        ({"hosts": [host(1, "a0", None, mac="ether")]}, "hosts[0].mac: expected a MAC address"),
        ({"hosts": [host(1, "a0", None), host(1, "b0", None)]}, "name h1 is given twice"),
        ({"hosts": [host(3, "a0", None)]}, "neither 10.0.0.1 nor 10.0.0.2 is a host of this job"),
        ({"flows": [{**flows(1, 1)[0], "colour": 1}]}, "flows[0].colour: unknown key"),
        (
            {"hosts": [host(1, "a0", None, paths={"10.0.0.2": {**PATHS, "ev": [1]}})]},
            "hosts[0].paths.10.0.0.2.ev: unknown key",
        ),
        ({"hosts": [host(1, "a0", None, paths={"10.0.0.2": {**PATHS, "evs": [0, 9]}})]}, "EV 0, expected"),
        ({"hosts": [host(1, "a0", None, paths={"10.0.0.2": {**PATHS, "evs": [9]}})]}, "same number of each"),
        ({"nic": STEERED}, "flow 0: host h1 has no path list to 10.0.0.2"),
        (
            {"flows": [{**flows(1, 1)[0], "steering": "ecmp"}], "nic": {"transport": "dctcp"}},
            "flow 0: host h1 has no path list to 10.0.0.2",
        ),
        ({"flows": flows(1, 1) * 2}, "queue pair 0 to 10.0.0.2 is taken"),
    ],
)
def test_bad_jobs_are_refused(tmp_path, capsys, changes, line):
    """Exit 2 and one line that says what is wrong."""
    code, said = refuse(job(None, tmp_path, **changes), capsys)
    assert line in said
    assert 2 == code


def test_an_interface_or_namespace_that_is_not_there_is_one_line(pair, tmp_path, capsys):
    """Exit 1, and the line names it."""
    code, said = refuse(job(None, tmp_path, hosts=[host(1, "nowhere0", pair[0].path)]), capsys)
    assert (1, True) == (code, "interface nowhere0: No such device" in said)
    code, said = refuse(job(None, tmp_path, hosts=[host(1, "a0", "no-such-space")]), capsys)
    assert (1, True) == (code, "network namespace /var/run/netns/no-such-space: No such file" in said)


def test_namespaces_are_found_by_pid_name_or_path():
    """As the job may give them."""
    assert ["/proc/7/ns/net", "/var/run/netns/blue", "/proc/9/ns/net"] == [
        str(namespace_path(netns)) for netns in (7, "blue", "/proc/9/ns/net")
    ]


def test_quantiles_of_lateness():
    """A quantile is never too small, and at most a 128th too large."""
    lag = Lag()
    assert 0 == lag.quantile_ns(0.5)
    values = [number * number for number in range(1000)]
    for value in values:
        lag.add(value)
    for share in (0.001, 0.25, 0.5, 0.99, 1.0):
        exact = values[max(0, round(share * 1000) - 1)]
        assert exact <= lag.quantile_ns(share) <= (exact + 1) * 129 / 128
    assert values[-1] == lag.max_ns
