# SPDX-License-Identifier: Apache-2.0
"""`tailrace trace` against real native switches over gRPC on loopback."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import msgspec
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from tailrace.cli.inspect.packet_argument import read_packets
from tailrace.p4rt.requests import TRACE, TraceRequest
from tailrace.spec import SpecError
from tests.cli.conftest import Command, Fabric
from tests.cli.frames import data_frame
from tests.controller.inspect.served import Primary

WORDS = 'Ether(dst="02:00:00:00:00:fe")/IP(src="10.0.1.2",dst="10.0.2.2")/UDP(sport=7,dport=9)/("x" * 50)'


def kinds(steps: list[dict], kind: str) -> list[dict]:
    return [step for step in steps if step["type"] == kind]


def test_a_packet_through_a_leaf(tailrace: Command, fabric: Fabric) -> None:
    """Entries by what the controller wrote, statements by their lines, and nothing of the switch has changed."""
    before = [tailrace(name, "leaf1", "-o", "json").rows for name in ("counters", "registers")]
    result = tailrace("trace", "leaf1", "--port", "1", WORDS)
    assert result.status == 0, result.err
    assert "hit: dst=10.0.2.0/24 to_group(group=1, size=2)" in result.out
    assert "[common/routes.p4:33]" in result.out
    assert "sent by port " in result.out
    (trace,) = json.loads(tailrace("trace", "leaf1", "--port", "1", WORDS, "--json").out)
    (enter,), (sent,) = kinds(trace["steps"], "enter"), kinds(trace["steps"], "sent")
    assert enter["frame"] == read_packets(WORDS)[0].hex()
    assert sent["port"] in (3, 4)
    (route,) = [s for s in kinds(trace["steps"], "table") if s["name"].endswith("ipv4_routes")]
    assert route["written"].startswith("dst=")
    assert [tailrace(name, "leaf1", "-o", "json").rows for name in ("counters", "registers")] == before


def test_a_file_of_packets_and_base_16(tailrace: Command, tmp_path: Path) -> None:
    frames = [data_frame("10.0.1.2", f"10.0.2.{host}") for host in (2, 3)]
    wrpcap(str(tmp_path / "two.pcap"), [Ether(frame) for frame in frames])
    traces = json.loads(tailrace("trace", "leaf1", "--port", "1", str(tmp_path / "two.pcap"), "--json").out)
    assert [kinds(trace["steps"], "enter")[0]["frame"] for trace in traces] == [f.hex() for f in frames]
    (trace,) = json.loads(tailrace("trace", "leaf1", "--port", "1", frames[0].hex(":"), "--json").out)
    assert trace == traces[0] | {"steps": trace["steps"]}
    assert kinds(trace["steps"], "table") == kinds(traces[0]["steps"], "table")


def test_every_way(tailrace: Command) -> None:
    """No program of Flowcut's leaf draws a number for such a packet: there is one way."""
    traces = json.loads(tailrace("trace", "leaf1", "--port", "1", WORDS, "--all", "--json").out)
    assert len(traces) == 1


def test_for_real(tailrace: Command, fabric: Fabric) -> None:
    """The steps are those of a try before, and the packet leaves the switch and is counted."""
    leaf = fabric.switches["leaf1"]
    fabric.install("leaf1")
    leaf.plane.take()
    (tried,) = json.loads(tailrace("trace", "leaf1", "--port", "1", WORDS, "--json").out)
    assert leaf.plane.take() == []
    (trace,) = json.loads(tailrace("trace", "leaf1", "--port", "1", WORDS, "--send", "--json").out)
    kinds_of = [[step["type"] for step in traced["steps"]] for traced in (tried, trace)]
    assert kinds_of[0] == kinds_of[1]
    (sent,) = kinds(trace["steps"], "sent")
    assert leaf.plane.take() == [(sent["port"], bytes.fromhex(sent["frame"]))]
    # of the next packet of the flow the switch knows
    (next_,) = json.loads(tailrace("trace", "leaf1", "--port", "1", WORDS, "--json").out)
    assert [step["type"] for step in next_["steps"]] != kinds_of[0]
    shown = tailrace("trace", "leaf1", "--port", "1", WORDS, "--send").out
    assert "sent by port" in shown


def test_for_real_beside_a_controller(tailrace: Command, fabric: Fabric) -> None:
    """Where there is a primary controller a packet is sent under its election id, or not at all."""
    leaf = fabric.switches["leaf1"]
    leaf.plane.take()
    asked = ["trace", "leaf1", "--port", "1", WORDS, "--send"]
    with Primary(leaf) as primary:
        result = tailrace(*asked)
        assert result.status == 1
        assert "needs its election id" in result.err
        assert len(result.err.strip().splitlines()) == 1
        assert leaf.plane.take() == []
        request = TraceRequest(leaf.device_id, 1, "00" * 60, send=True, election_id=primary.election_id)
        with grpc.insecure_channel(leaf.address) as channel:
            call = channel.unary_stream(f"/{'/'.join(TRACE)}", bytes, bytes)
            assert len(list(call(msgspec.json.encode(request), timeout=60))) == 1
    assert tailrace(*asked).status == 0
    assert len(leaf.plane.take()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["leaf1", "00", "--port", "1", "--send", "--all"], "--send"),
        (["leaf1", "00", "--port", "1", "--send", "--save", "x.json"], "--send"),
        (["h1", "h3", "--send"], "--send"),
        (["leaf1", "00", "--port", "1", "--send", "--election-id", "0"], "--election-id"),
        (["leaf1", "00", "--port", "700", "--send"], "port 700"),
    ],
)
def test_bad_words_for_real(tailrace: Command, fabric: Fabric, words: list[str], said: str) -> None:
    fabric.switches["leaf1"].plane.take()
    result = tailrace("trace", *words)
    assert result.status in (1, 2)
    assert said in result.err
    assert fabric.switches["leaf1"].plane.take() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("Ether(", "expected base 16"),
        ("__import__('os').system('true')", "expected"),
        ("Ether().show()", "expected"),
        ("Nothing()", "no layer 'Nothing'"),
        ("Ether(1)", "expected FIELD=VALUE"),
        ("Ether(**{'dst': 1})", "expected FIELD=VALUE"),
        ("Ether(dst=open('x'))", "no layer 'open'"),
        ("IP(ttl='many')", "PACKET"),
        ("'x' * 999999999", "more than"),
        ("[x for x in ()]", "no value"),
        ("123", "odd number"),
        ("/" * 5000, "expected base 16"),
        ("(" * 5000, "expected base 16"),
        ("(" + "-" * 5000 + "1)", "PACKET"),
        ("Ether()" + "/IP()" * 9000, "PACKET"),
        ("Ether()" + "/IP()" * 64, "more than 64 layers"),
        ("missing.pcap", "No such file"),
        ("", "expected base 16"),
    ],
)
def test_bad_packets(tailrace: Command, words: str, said: str) -> None:
    """One clear line, whatever the word is; nothing of it is run."""
    result = tailrace("trace", "leaf1", "--port", "1", words)
    assert result.status == 2
    assert len(result.err.strip().splitlines()) == 1, result.err
    assert said in result.err


def test_scapy_words_mean_what_scapy_makes_of_them() -> None:
    assert len(read_packets("Ether()" + "/IP()" * 63)[0]) == 14 + 63 * 20
    made = Ether(dst="02:00:00:00:00:fe") / IP(src="10.0.1.2", dst="10.0.2.2", options=b"") / UDP(dport=[9])
    assert read_packets(
        'Ether(dst="02:00:00:00:00:fe")/IP(src="10.0.1.2",dst="10.0.2.2",options=b"")/UDP(dport=[9])'
    ) == [bytes(made)]
    with pytest.raises(SpecError):
        read_packets("IP(src=-1)/bytes")


def test_an_unknown_port_and_a_switch_without_a_program(
    tailrace: Command, command: Command, bare_address: str
) -> None:
    assert "port 700" in tailrace("trace", "leaf1", "--port", "700", "00").err
    result = command("trace", "s1", "--address", f"s1={bare_address}@1", "--port", "1", "00")
    assert result.status == 1
    assert "no program" in result.err


@pytest.mark.parametrize(
    "request_",
    [
        b"", b"{", b"[]", b"null", b"\xff" * 100, b"{}", b'{"device_id":0}',
        b'{"device_id":0,"port":1,"frame":"0"}', b'{"device_id":0,"port":1,"frame":"zz"}',
        b'{"device_id":-1,"port":1,"frame":""}', b'{"device_id":99,"port":1,"frame":""}',
        b'{"device_id":0,"port":18446744073709551616,"frame":""}', b'{"device_id":0,"port":1,"frame":"","x":1}',
        b'{"device_id":1,"port":1,"frame":"","send":true,"every":true}',
        b'{"device_id":1,"port":1,"frame":"","send":1}',
        b'{"device_id":0,"port":1,"frame":"' + b"00" * 66001 + b'"}', b"x" * 200_000, b"[" * 100_000,
    ],
)  # fmt: skip
def test_bad_requests(fabric: Fabric, request_: bytes) -> None:
    """What is no request ends in an error with one line, and the switch goes on."""
    with grpc.insecure_channel(fabric.switches["leaf1"].address) as channel:
        call = channel.unary_stream(f"/{'/'.join(TRACE)}", bytes, bytes)
        with pytest.raises(grpc.RpcError) as caught:
            list(call(request_, timeout=60))
        assert caught.value.code() in (
            grpc.StatusCode.INVALID_ARGUMENT,
            grpc.StatusCode.NOT_FOUND,
            grpc.StatusCode.FAILED_PRECONDITION,
        ), caught.value
        assert "\n" not in (caught.value.details() or "")


def test_from_host_to_host(tailrace: Command, fabric: Fabric) -> None:
    """Over the switches that the entries lead to, to the host; the last switch acknowledges the bytes to the first
    (Flowcut §II-B), which is a copy that is followed, too.
    """
    result = tailrace("trace", "h1", "h3")
    assert result.status == 0, result.err
    lines = result.out.splitlines()
    switches = [line.partition(":")[0] for line in lines if not line.startswith(" ") and ": from " in line]
    assert switches[0] == "leaf1"
    assert switches[1] in ("spine1", "spine2")
    assert switches[2:] == ["leaf2", switches[1], "leaf1"]
    assert [line for line in lines if line.startswith("arrives")] == ["arrives at h3"]
    assert any("to_host" in line for line in lines)
    steps = json.loads(tailrace("trace", "h1", "h3", "--json").out)
    (arrival,) = kinds(steps, "arrival")
    assert len(kinds(steps, "hop")) == len(switches)
    arrived = Ether(bytes.fromhex(arrival["frame"]))
    assert (arrived[IP].dst, arrived[IP].ttl) == (fabric.topology.host("h3").ip, 61)
    assert len(tailrace("trace", "h1", "h3", "--full").out.splitlines()) > 10 * len(lines)


def test_from_host_to_host_with_a_packet(tailrace: Command, fabric: Fabric) -> None:
    """A packet of the user's, here one that the first switch refuses: its source is another host."""
    h1, h2, h3 = (fabric.topology.host(name) for name in ("h1", "h2", "h3"))
    words = f'Ether()/IP(src="{h2.ip}",dst="{h3.ip}")/UDP()'
    result = tailrace("trace", h1.name, h3.name, words)
    assert result.status == 0
    assert "arrives" not in result.out
    assert "dropped: ingress_drop" in result.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["h1", "h99"], "no host 'h99'"),
        (["leaf1", "h1"], "no host 'leaf1'"),
        (["h1", "h3", "--all"], "--all: only for a switch"),
        (["leaf1", "00", "00", "--port", "1"], "followed by one PACKET"),
        (["nothing", "00", "--port", "1"], "no switch 'nothing'"),
        (["h1", "h3", "Ether("], "expected base 16"),
    ],
)
def test_bad_words(tailrace: Command, words: list[str], said: str) -> None:
    result = tailrace("trace", *words)
    assert result.status == 2
    assert said in result.err
    assert len(result.err.strip().splitlines()) == 1
