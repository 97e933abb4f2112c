# SPDX-License-Identifier: Apache-2.0
"""Programs of users on a network in virtual time."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4r
from google.protobuf import text_format
from scapy.layers.l2 import Ether

import tailrace
from tailrace.experiments.plan.identity import run_id_of
from tailrace.p4rt import programs
from tailrace.p4rt.entry_files import read_updates
from tailrace.sim.run import PausedRun
from tests.user_programs.network import (
    HOSTS,
    LINK_PORT,
    MACS,
    OTHER,
    PORTS,
    TOPOLOGY,
    arrived,
    commands,
    copy_program,
    expected,
    frames_of,
    make_network,
    topology,
    write_capture,
)

PERMUTATION = "permutation:size=20KiB"
BROADCAST = "ff:ff:ff:ff:ff:ff"
SCHEME = "program:json=basic_l3.json"


@pytest.fixture(autouse=True)
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return make_network(tmp_path)


def run(scheme: str = SCHEME, **keys: Any) -> Any:
    """The result, as Any: what a run has not measured would be an error in these tests."""
    keys = {"topology": TOPOLOGY, "workload": PERMUTATION, "target": "virtual"} | keys
    return tailrace.run(scheme=scheme, **keys)


def as_runtime(folder: Path) -> str:
    for switch in OTHER:
        (folder / f"{switch}-runtime.json").write_bytes(Path(f"{switch}-runtime.json").read_bytes())
    return str(folder)


def as_commands(folder: Path) -> str:
    for switch in OTHER:
        (folder / f"{switch}-commands.txt").write_text(commands(switch))
    return str(folder)


def as_requests(folder: Path) -> str:
    program = programs.read(Path("basic_l3.json"))
    for switch in OTHER:
        request = p4r.WriteRequest(updates=read_updates(Path(f"{switch}-runtime.json"), program))
        (folder / f"{switch}.txtpb").write_text(text_format.MessageToString(request))
    return str(folder)


def test_every_form_of_entries_gives_the_same_run(tmp_path: Path) -> None:
    """Named by topology.json or in a folder: the trace has every frame with its time."""
    traces = {run().summary.trace_sha256}
    Path("topology.json").write_text(json.dumps(topology()))
    for write in (as_runtime, as_commands, as_requests):
        folder = tmp_path / write.__name__
        folder.mkdir()
        traces.add(run(f"{SCHEME},entries={write(folder)}").summary.trace_sha256)
    files = {switch: {"cli_input": f"as_commands/{switch}-commands.txt"} for switch in OTHER}
    Path("topology.json").write_text(json.dumps(topology(**files)))
    traces.add(run().summary.trace_sha256)
    assert len(traces) == 1


def test_a_program_for_each_switch(tmp_path: Path) -> None:
    """topology.json names them; counters are those of each program."""
    copy_program(tmp_path / "build" / "counting.json", "counters")
    files = {"s1": {"runtime_json": "s1-runtime.json"}, "s2": {"program": "build/counting.json"}}
    Path("topology.json").write_text(json.dumps(topology(**files)))
    result = run(workload="ping:from=h1,to=h2")
    assert result.summary.pings.received == 3
    assert set(result.summary.counters) == {"s2"}
    Path("topology.json").write_text(json.dumps(topology(s1={"program": "basic_l3.json"})))
    with pytest.raises(tailrace.SpecError, match="no program for s2"):
        run("program")


def test_frames_arrive_as_the_program_says(tmp_path: Path) -> None:
    """And nothing else does, nor at another host."""
    for sender in HOSTS:
        write_capture(tmp_path / f"{sender}.pcap", frames_of(sender))
        run(workload=f"replay:host={sender},file={sender}.pcap", out=tmp_path / sender)
        assert arrived(tmp_path / sender) == expected(sender)


def test_groups_of_runtime_files_reach_all_hosts_but_the_sender(tmp_path: Path) -> None:
    """Frames of a protocol that Tailrace does not know (tests/programs/multicast.p4); egress writes its port."""
    copy_program(tmp_path / "basic_l3.json", "multicast")
    for switch in OTHER:
        ports = [port for at, port in PORTS.values() if at == switch]
        replicas = [{"egress_port": port, "instance": 0} for port in (*ports, LINK_PORT)]
        groups = [{"multicast_group_id": 1, "replicas": replicas}]
        files = {"target": "bmv2", "p4info": "-", "bmv2_json": "-", "multicast_group_entries": groups}
        Path(f"{switch}-runtime.json").write_text(json.dumps(files))
    ether = bytes(Ether(src=MACS["h1"], dst=BROADCAST, type=0x1234))
    split_horizon, replication = 8, 5
    order = struct.pack("!HBBHH", 1, split_horizon, 0, 0, 0)
    write_capture(tmp_path / "h1.pcap", [Ether(ether + order)])
    run(workload="replay:host=h1,file=h1.pcap", out=tmp_path / "out")
    assert arrived(tmp_path / "out") == {
        host: [ether + struct.pack("!HBBHH", 1, split_horizon, replication, 0, port)]
        for host, (_, port) in PORTS.items()
        if host != "h1"
    }


def test_captures_keep_times_and_speed(tmp_path: Path) -> None:
    """A frame arrives as long after the first one as in the capture, divided by the speed."""
    frames = [frame for frame in frames_of("h1") if "UDP" in frame and frame["IP"].dst == HOSTS["h2"]][:2]
    write_capture(tmp_path / "h1.pcap", frames, 0.05)
    for speed in (1, 4):
        kept = run(workload=f"replay:host=h1,file=h1.pcap,speed={speed},at=1s").frames["h2"].kept
        assert kept[0].time_ns > 1_000_000_000
        assert kept[1].time_ns - kept[0].time_ns == 50_000_000 // speed


def test_what_is_read_back_is_what_was_measured(tmp_path: Path) -> None:
    write_capture(tmp_path / "h1.pcap", frames_of("h1"))
    result = run(workload=f"replay:host=h1,file=h1.pcap + ping + {PERMUTATION}", out=tmp_path / "out")
    read = tailrace.open_result(tmp_path / "out")
    assert {name: each for name, each in read.frames.items() if each.kept or each.pings} == {
        name: each for name, each in result.frames.items() if each.kept or each.pings
    }
    assert read.pings.to_struct_array().to_pylist() == result.pings.to_struct_array().to_pylist()
    # a run without such frames leaves none of these files behind
    run(out=tmp_path / "out")
    assert not arrived(tmp_path / "out") and not (tmp_path / "out" / "pings.parquet").exists()


def test_round_trips_of_pings() -> None:
    """Of the idle network: a frame of 14 + 20 + 8 + 56 bytes over each link, there and back."""
    frame_bits = 98 * 8
    link_ns, slow_ns = frame_bits * 100 + 10_000, frame_bits * 200
    result = run(workload="ping:from=h1,count=2,interval=100ms")
    rtts = {(row[0], row[1]): row[2] for row in _rows(result, "dst", "sequence", "rtt_ns")}
    assert rtts == {
        **{("h2", sequence): 4 * link_ns for sequence in range(2)},
        # requests to h3 and h4 leave h1 behind those to h2, and h3's reply takes the slow link before h4's
        **{("h3", sequence): rtts["h3", sequence] for sequence in range(2)},
        **{("h4", sequence): rtts["h4", sequence] for sequence in range(2)},
    }
    (alone,) = _rows(run(workload="ping:from=h1,to=h3,count=1"), "rtt_ns")
    assert alone == (4 * link_ns + 2 * slow_ns,)
    assert min(rtts["h3", 0], rtts["h4", 0]) >= alone[0]


def _rows(result: Any, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(result.pings.column(name).to_pylist() for name in names), strict=True)


def test_lost_pings_are_counted(tmp_path: Path) -> None:
    """s2 has no route to h1's network: requests to h3 arrive, replies do not."""
    document = json.loads(Path("s2-runtime.json").read_text())
    document["table_entries"] = document["table_entries"][2:]
    Path("s2-runtime.json").write_text(json.dumps(document))
    summary = run(workload="ping:from=h1,count=5").summary
    assert (summary.pings.sent, summary.pings.received) == (15, 5)
    assert sum(each.get("drops.ingress_drop", 0) for each in summary.counters.values()) == 10


def test_queues_are_those_of_the_traffic_manager() -> None:
    """Packets beyond the depth are dropped and counted; without a limit none is."""
    incast = {"workload": "incast:degree=3,size=64KiB,to=h3", "transport": "udp"}
    dropped = {
        depth: run(f"{SCHEME},{depth}", **incast).summary.packets.dropped
        for depth in ("depth=8", "depth=64", "queue=70000", "depth=0")
    }
    assert dropped["depth=8"] > dropped["depth=64"] > dropped["depth=0"] == 0
    assert dropped["queue=70000"] == pytest.approx(dropped["depth=64"], abs=3)
    packets = run(f"{SCHEME},depth=8", **incast).summary.packets
    assert packets.sent == packets.delivered + packets.dropped_data


def test_there_is_no_pfc_unless_asked_for() -> None:
    assert not run().summary.pfc
    assert run(pfc="xoff=4KiB", workload="incast:degree=3,size=64KiB").summary.pfc["pauses"] > 0


def test_nobody_changes_entries_when_links_fail() -> None:
    """Flows over the link stop for as long as it is down; a restarted switch gets its files again."""
    result = run(
        fault="link-down:link=s1-s2,at=5ms,until=600ms",
        workload="permutation:size=20KiB,peers=remote",
        transport="gbn:rto=20ms",
    )
    assert result.complete and min(row.end_ns for row in result.rows) > 600_000_000
    result = run(fault="switch-restart:switch=s2,at=5ms,for=100ms", transport="gbn:rto=20ms")
    assert result.complete and max(row.end_ns for row in result.rows) > 105_000_000


def test_the_identity_of_a_run_has_the_contents_of_its_files(tmp_path: Path) -> None:
    def identity() -> str:
        return run_id_of(tailrace.experiment(scheme=SCHEME, topology=TOPOLOGY, workload=PERMUTATION))

    seen = {identity(), identity()}
    for name in ("basic_l3.json", "basic_l3.p4info.txtpb", "s2-runtime.json"):
        Path(name).write_text(Path(name).read_text() + "\n")
        seen.add(identity())
    assert len(seen) == 4


def test_a_program_that_was_compiled_anew_is_read_anew(tmp_path: Path) -> None:
    """In one process, as in a notebook."""
    before = run().summary.p4_sha256
    Path("basic_l3.json").write_text(Path("basic_l3.json").read_text().replace('"ttl"', '"ttl"', 1) + " ")
    assert run().summary.p4_sha256 != before


@pytest.mark.parametrize("workload", [PERMUTATION, f"ping + {PERMUTATION}"])
def test_results_do_not_depend_on_ranks(workload: str) -> None:
    one, two = run(workload=workload), run(workload=workload, ranks=2)
    assert one.summary.trace_sha256 == two.summary.trace_sha256
    assert one.frames == two.frames
    assert one.rows == two.rows


def test_a_controller_may_write_entries_while_the_run_stops() -> None:
    Path("topology.json").write_text(json.dumps(topology()))
    program = programs.read(Path("basic_l3.json"))

    def write(paused: PausedRun) -> None:
        for switch in OTHER:
            updates = read_updates(Path(f"{switch}-runtime.json"), program)
            paused.network.p4rt(switch).write(p4r.WriteRequest(updates=updates))

    assert run(stop_at=["1ns"], at_stop=write).complete
    assert not run().complete


def test_slowdown_and_fair_sharing_are_left_out(tmp_path: Path) -> None:
    """Both assume shortest paths, which the entries need not take: blank, with one remark."""
    result = run(out=tmp_path / "out")
    assert not result.summary.slowdown and not result.summary.fair
    assert {(row.ideal_fct_ns, row.slowdown) for row in result.rows} == {(None, None)}
    assert tailrace.open_result(tmp_path / "out").rows == result.rows
    results = tailrace.compare(schemes=[SCHEME], topology=TOPOLOGY, workload=PERMUTATION, target="virtual")
    assert sum("no slowdown and no fair sharing" in line for line in results.table.caption) == 1
    assert not any(name.startswith(("slowdown", "fct_fair")) for name in results.metrics.column_names)
    ours = tailrace.compare(schemes=["ecmp"], topology=TOPOLOGY, workload=PERMUTATION, target="virtual")
    assert not any("no slowdown" in line for line in ours.table.caption)


def test_versions_of_a_program_are_compared(tmp_path: Path) -> None:
    copy_program(tmp_path / "other" / "basic_l3.json")
    results = tailrace.compare(
        schemes=[SCHEME, "program:json=other/basic_l3.json,depth=4"],
        topology=TOPOLOGY,
        workload="incast:degree=3,size=64KiB",
        target="virtual",
        out=tmp_path / "out",
    )
    summaries: list[Any] = [result.summary for result in results.results]
    assert summaries[0].packets.dropped < summaries[1].packets.dropped
    assert (tmp_path / "out" / "figure.svg").exists()


def test_udp_sends_at_its_rate_and_counts_losses() -> None:
    """The FCT is that of the last packet that arrives; with a longer queue or a slower rate none is lost."""
    two = "incast:degree=2,size=100KB,to=h3,from=h1"
    fits = run(workload=two, transport="udp:rate=2Mbps")
    assert all(row.received == row.packets for row in fits.rows)
    # 98 packets of 1024 bytes and 58 of headers; the last one leaves after all others, then takes three links
    wire_bits = 98 * (1024 + 58) * 8
    assert fits.summary.fct_ns.max == pytest.approx(wire_bits / 2e6 * 1e9, rel=0.05)
    over = run(f"{SCHEME},depth=4", workload=two, transport="udp:rate=4Mbps")
    lost = sum(row.packets - row.received for row in over.rows)
    assert over.complete and lost == over.summary.packets.dropped_data > 0
