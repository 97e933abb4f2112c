"""Parts of the harness by themselves: plans, faults, captures, the judgement of the machine, Thrift."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import re
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from fabric_bmv2 import thrift
from fabric_control import reasons_to_distrust
from fabric_faults import schedule
from fabric_links import FabricLinks
from fabric_load import CpuUsage, Interface, LoadWatch
from fabric_plan import FabricPlan, command, make_plan
from fabric_process import FabricProcess
from fabric_report import FabricError, InputError
from fabric_sandbox import LEDGER, make_run_dir, remove_stale, start_time
from fabric_watch import ProcessMonitor
from scapy.layers.l2 import Dot1Q, Ether
from scapy.utils import PcapReader

from tailrace.bmv2.thrift import ThriftClient, ThriftError
from tailrace.codec.captures import PCAP_HEADER, pcap_packet
from tailrace.p4rt.target import target
from tailrace.sim.link_faults import LinkDown, LinkFault, LinkSlow
from tailrace.topology import parse_topology

FRAME_NS = 1_000_000


def plan_of(words: str, target: str = "native") -> FabricPlan:
    return make_plan(parse_topology(words), target, Path("/run/x"), Path("/logs"))


def test_interfaces_are_named_after_switches_and_ports() -> None:
    """Names tell where an interface is."""
    plan = plan_of("leaf-spine:leaves=2,spines=2,hosts=2")
    assert [port.interface for port in plan.switches[0].ports] == [f"leaf1-eth{n}" for n in (1, 2, 3, 4)]
    assert [link.name for link in plan.links[-2:]] == ["leaf2-spine1", "leaf2-spine2"]
    assert plan.switches[0].address == "unix:/run/x/leaf1.sock"


@pytest.mark.parametrize("words", ["fat-tree:k=12", "leaf-spine:leaves=40,spines=10,hosts=30"])
def test_names_and_addresses_are_unique_and_short(words: str) -> None:
    """The kernel takes 15 characters; large topologies get their names from numbers."""
    plan = plan_of(words)
    ends = [end for link in plan.links for end in (link.a, link.b)]
    names = [end.interface for end in ends]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 15
    assert len({end.mac for end in ends}) == len(ends)
    assert len({link.name for link in plan.links}) == len(plan.links)


def test_the_native_switch_is_given_rates_and_delays() -> None:
    """Every port has its own."""
    plan = plan_of("leaf-spine:leaves=2,spines=1,hosts=1,rate=8Mbps,delay=2ms")
    words = command(plan.switches[0], target("native"), "64")
    assert words[words.index("--queue-depth") + 1] == "64"
    assert [word for word in words if word.endswith("bps")] == ["1:8000000bps", "2:8000000bps"]
    assert [word for word in words if word.endswith("000ns")] == ["1:2000000ns", "2:2000000ns"]


@pytest.mark.parametrize("target", ["native", "bmv2"])
def test_latency_belongs_to_what_leads_to_a_switch(target: str) -> None:
    """A port to a host delays by its link alone."""
    plan = plan_of("leaf-spine:leaves=2,spines=1,hosts=1,delay=2ms,latency=3ms", target)
    assert [port.delay_ns for port in plan.switches[0].ports] == [2_000_000, 5_000_000]


def test_steps_are_in_order_of_time() -> None:
    """Whatever the order of the faults."""
    plan = plan_of("leaf-spine:leaves=2,spines=2,hosts=1", "bmv2")
    faults: list[LinkFault] = [
        LinkDown("leaf1", "spine1", at_ns=50, until_ns=90),
        LinkSlow("leaf2", "spine1", factor=0.5, at_ns=10, until_ns=70),
        LinkSlow("leaf2", "spine2", factor=0.5),
    ]
    steps = schedule(plan, FabricLinks(plan, 1000), faults)
    assert [(step.at_ns, step.text) for step in steps] == [
        (0, "leaf2-spine2 is slow"),
        (10, "leaf2-spine1 is slow"),
        (50, "leaf1-spine1 is down"),
        (70, "leaf2-spine1 has its rate again"),
        (90, "leaf1-spine1 is up"),
    ]


def test_captures_are_read_by_others(tmp_path: Path) -> None:
    """Frames and times in ns survive, VLAN tags too."""
    frame = bytes(Ether(src="02:00:00:00:00:01") / Dot1Q(vlan=7) / b"payload")
    packet_bytes = pcap_packet(1_234_567_890_123_456_789, frame, len(frame))
    (tmp_path / "x.pcap").write_bytes(PCAP_HEADER + packet_bytes)
    with PcapReader(str(tmp_path / "x.pcap")) as reader:
        (packet,) = list(reader)
    assert bytes(packet) == frame
    assert int(packet.time * 10**9) == 1_234_567_890_123_456_789


@pytest.mark.parametrize(
    ("before", "after", "taken", "reasons"),
    [
        (Interface(10, 0), Interface(110, 0), 98, ()),  # frames under way when counters are read are no loss
        (
            *(Interface(10, 0), Interface(110, 0), 60),
            ("40 of 100 frames at eth were lost before the program saw them",),
        ),
        (Interface(10, 2), Interface(20, 5), 10, ("the kernel dropped 3 frames at eth",)),
    ],
)
def test_frames_that_the_machine_lost_are_reported(
    before: Interface, after: Interface, taken: int, reasons: tuple[str, ...]
) -> None:
    """Of an interface whose program has taken `taken` frames meanwhile."""
    watch = LoadWatch({}, FRAME_NS, {"eth": 0})
    watch._interfaces = {"eth": before}
    assert watch.reasons({"eth": after}, {"eth": taken}) == list(reasons)


def test_links_that_fail_on_purpose_are_not_blamed() -> None:
    """What is lost there says nothing about the machine."""
    watch = LoadWatch({}, FRAME_NS, {"lo": 0})
    assert watch.reasons({}, {"lo": 0}) == []


def test_waiting_for_a_cpu_is_reported() -> None:
    """On average a third of the time that a frame takes."""
    watch = LoadWatch({"leaf1": os.getpid()}, FRAME_NS, {})
    start = watch._usage["leaf1"]
    waited = start.waited_ns + 1000 * FRAME_NS // 3
    watch._latest["leaf1"] = CpuUsage(start.run_ns, waited, start.dispatches + 1000)
    (reason,) = watch.reasons({}, {})
    assert reason.startswith("leaf1 waited 333 us for a CPU each time, over 25%")


@pytest.mark.parametrize(
    ("run_ms", "waited_ms", "dispatches", "other_share", "reported"),
    [
        (650, 4300, 10_000, 0.3, True),
        (0, 9, 198, 0.3, False),
        (0, 9, 200, 0.3, True),
        # they wait for each other
        (650, 4300, 10_000, 0.2, False),
    ],
)
def test_a_machine_that_does_other_work_is_reported(
    run_ms: int, waited_ms: int, dispatches: int, other_share: float, reported: bool
) -> None:
    """Processes wait more than twice as long as they run, and others run, however short each wait is."""
    watch = LoadWatch({name: os.getpid() for name in ("leaf1", "hosts")}, 10 * FRAME_NS, {})
    for name, start in watch._usage.items():
        share = 1_000_000 // len(watch._usage)
        watch._latest[name] = CpuUsage(
            start.run_ns + run_ms * share,
            start.waited_ns + waited_ms * share,
            start.dispatches + dispatches // len(watch._usage),
        )
    watch._sampled = watch._start + 10
    other_s = other_share * 10 * (os.cpu_count() or 1)
    watch._latest_busy_s = watch._busy_s + run_ms / 1000 + other_s
    reasons = watch.reasons({}, {})
    assert [reason.rpartition(", while ")[2] for reason in reasons] == [
        f"other processes ran for {other_s:.1f} s"
    ] * reported


@pytest.mark.parametrize(("share", "reported"), [(0.75, False), (0.85, True)])
def test_a_run_that_needs_all_cpus_is_reported(share: float, reported: bool) -> None:
    """Then the CPUs decide how long flows take, though nobody waits long and nothing else runs."""
    watch = LoadWatch({"leaf1": os.getpid()}, 10 * FRAME_NS, {})
    start = watch._usage["leaf1"]
    run_s = share * 10 * (os.cpu_count() or 1)
    watch._latest["leaf1"] = CpuUsage(
        start.run_ns + round(run_s * 1e9), start.waited_ns, start.dispatches + 10_000
    )
    watch._sampled, watch._latest_busy_s = watch._start + 10, watch._busy_s + run_s
    reasons = watch.reasons({}, {})
    assert [reason.partition(": ")[0] for reason in reasons] == [
        "switches and hosts used 85% of all CPUs, over 80%"
    ] * reported


@pytest.fixture
def short_path() -> Iterator[Path]:
    """Pytest's own folders are too long for sockets."""
    with tempfile.TemporaryDirectory(prefix="tr-") as folder:
        yield Path(folder)


def test_stale_files_go_and_others_stay(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is stale when its supervisor is gone, or when its number belongs to another process."""
    monkeypatch.setattr("tempfile.tempdir", str(short_path))
    living, dead, reused = make_run_dir(), make_run_dir(), make_run_dir()
    strange = short_path / "tailrace-run-strange"
    strange.mkdir()
    (strange / LEDGER).write_text("[")
    run_file = short_path / "current.json"
    run_file.write_text(f'"unix:{dead}/leaf1.sock"')
    start_ticks = start_time(os.getpid())
    assert start_ticks is not None
    for folder, ledger in (
        (dead, {"pid": 1 << 30, "start_ticks": 5, "run_file": str(run_file)}),
        (reused, {"pid": os.getpid(), "start_ticks": start_ticks - 1}),
    ):
        (folder / LEDGER).write_text(json.dumps(ledger))
    assert set(remove_stale()) == {dead, reused}
    assert {path.name for path in short_path.iterdir()} == {living.name, strange.name}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("linked", [False, True])
def test_what_others_say_of_stale_files_is_not_believed(
    short_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    """A ledger of ours in another user's folder, and a folder of ours that is a link into one."""
    monkeypatch.setattr("tempfile.tempdir", str(short_path))
    foreign = make_run_dir()
    (foreign / LEDGER).write_text(json.dumps({"pid": 1 << 30, "start_ticks": 5}))
    nobody = 65534
    if linked:
        foreign.rename(short_path / "elsewhere")
        foreign.symlink_to(short_path / "elsewhere")
        os.chown(short_path / "elsewhere", nobody, nobody)
    else:
        os.chown(foreign, nobody, nobody)
    assert remove_stale() == []
    assert (foreign / LEDGER).exists()


def test_folders_too_long_for_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line says what to do."""
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with pytest.raises(InputError, match="TMPDIR"):
        make_run_dir()
    assert list(deep.iterdir()) == []


def test_a_process_that_ends_is_noticed_with_its_last_words(tmp_path: Path) -> None:
    """What it said before is heard first."""
    script = 'echo \'{"event": "a"}\'; echo first >&2; echo "last  words" >&2; exit 3'
    process = FabricProcess("leaf1", ["sh", "-c", script], tmp_path / "log", piped=True)
    heard: list[object] = []
    watch = ProcessMonitor()
    watch.listen(process, heard.append)
    watch.guard(process)
    try:
        with pytest.raises(FabricError, match=r"^leaf1 ended with exit code 3: last words$"):
            watch.wait(lambda: False, 60, "nothing")
    finally:
        process.end()
    assert heard == [{"event": "a"}]


def test_a_process_that_is_forgotten_may_end(tmp_path: Path) -> None:
    """Its end is no failure, its pipe may be closed, and another one that gets the same descriptor is heard."""
    watch = ProcessMonitor()
    for _ in range(3):
        script = 'echo \'{"event": "a"}\'; read -r _'
        process = FabricProcess("hosts", ["sh", "-c", script], tmp_path / "log", piped=True)
        heard: list[object] = []
        watch.listen(process, heard.append)
        watch.guard(process)
        try:
            watch.wait(partial(bool, heard), 60, "nothing")
            watch.forget(process)
            watch.forget(process)
        finally:
            process.end()
        watch.poll(0)


def serve(*connections: list[bytes], listener: socket.socket | None = None) -> tuple[int, list[bytes]]:
    """A server that answers each message with the next of a connection's answers, and then ends the connection; its
    port, and what it is sent."""
    listener = socket.create_server(("127.0.0.1", 0)) if listener is None else listener
    received: list[bytes] = []

    def run() -> None:
        with listener:
            for answers in connections:
                with listener.accept()[0] as client:
                    for answer in answers:
                        received.append(client.recv(4096))
                        client.sendall(answer)

    threading.Thread(target=run, daemon=True).start()
    return listener.getsockname()[1], received


def reply(body: bytes, kind: int = 2) -> bytes:
    return struct.pack(">III", 0x80010000 | kind, 1, 0)[:8] + b"m" + struct.pack(">i", 0) + body


def test_thrift_calls() -> None:
    """A call with a number as result, one without, one with an exception."""
    number = struct.pack(">BhiB", 8, 0, 0, 0)
    port, received = serve([reply(number), reply(b"\0"), reply(b"\x0c\0\1\0\0")])
    refusal = "^leaf1: simple_switch_grpc: its Thrift server refused bm_dev_mgr_add_port$"
    with pytest.raises(FabricError, match=refusal), thrift(port, "leaf1") as client:
        client.set_queue_rate(3, 0, 500)
        client.remove_port(3)
        client.add_port(3, "leaf1-eth3")
    name = b"simple_switch:set_egress_priority_queue_rate"
    fields = struct.pack(">BhiBhiBhqB", 8, 1, 3, 8, 2, 0, 10, 3, 500, 0)
    head = struct.pack(">II", 0x80010001, len(name))
    assert received[0] == head + name + b"\0\0\0\0" + fields


def application_error(number: int, text: str) -> bytes:
    """What Thrift's C++ servers answer a call that they cannot serve."""
    fields = struct.pack(">BhI", 11, 1, len(text)) + text.encode() + struct.pack(">BhiB", 8, 2, number, 0)
    return reply(fields, kind=3)


UNKNOWN = "TMultiplexedProcessor: Unknown service: simple_switch. Did you forget to call registerProcessor()?"


def test_a_thrift_server_without_its_services_yet() -> None:
    """BMv2 listens before it registers simple_switch: the call is made again until it is served, on a new connection,
    since the server ends each that asked for a service it does not know."""
    early, late = [application_error(6, UNKNOWN)], [reply(b"\0"), reply(b"\0")]
    port, received = serve(early, early, late)
    with thrift(port, "leaf1") as client:
        client.set_queue_depths(64)
        client.remove_port(3)
    assert len(set(received[:3])) == 1
    assert [b"set_all_egress_queue_depths" in message for message in received] == [True, True, True, False]


@pytest.mark.parametrize(
    ("number", "text", "start_s"),
    [(6, UNKNOWN, 0.0), (1, "Invalid method name: 'set_all_egress_queue_depths'", 60.0)],
)
def test_a_thrift_server_without_a_service(number: int, text: str, start_s: float) -> None:
    """A service that never comes, and a method that is not there, are told with the server's own reason."""
    port, received = serve([application_error(number, text)])
    refusal = f"refused set_all_egress_queue_depths: {re.escape(text)}$"
    with ThriftClient(port, start_s) as client, pytest.raises(ThriftError, match=refusal):
        client.set_queue_depths(64)
    assert len(received) == 1


def test_a_thrift_server_that_listens_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused connection is tried again, while the server may be starting."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))

    def begin(_s: float) -> None:
        listener.listen()
        serve([reply(b"\0")], listener=listener)

    monkeypatch.setattr(time, "sleep", begin)
    with ThriftClient(listener.getsockname()[1]) as client:
        client.remove_port(3)


def test_what_the_watching_of_links_tells() -> None:
    """Links that were called dead without a fault, and whoever was late, make a run that is not relied on."""
    down = {"event": "link-down", "subject": "leaf1-spine1", "text": ""}
    late = [
        {"event": "late", "subject": name, "text": "", "late_s": s} for name, s in (("a", 1.0), ("b", 4.2))
    ]
    assert reasons_to_distrust([], set()) == []
    assert (
        reasons_to_distrust(
            [down, {"event": "link-up", "subject": "leaf1-spine1", "text": ""}], {"leaf1-spine1"}
        )
        == []
    )
    assert reasons_to_distrust([down, down], {"leaf1-spine2"}) == [
        "the controller took leaf1-spine1 for dead, and rerouted, though nothing had failed"
    ]
    assert reasons_to_distrust(late, set()) == [
        "b and 1 more did not keep up with the watching of links for 4.2 s"
    ]
