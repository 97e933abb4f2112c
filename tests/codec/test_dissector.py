# SPDX-License-Identifier: Apache-2.0
"""Wireshark, with `tailrace dissector`, sees in each header of ours what Scapy sees: in captures of runs, and in frames
with random fields."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.fields import IPField, PacketListField
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import PcapNgReader, wrpcap

import tailrace
from tailrace.cli.main import main
from tailrace.codec import dissector
from tailrace.codec.layers.local import (
    Cnm,
    DataShim,
    Detour,
    FlowcutAck,
    FlowPause,
    LocalHeader,
    PathProbe,
    Stamp,
)
from tailrace.codec.layers.nic_shim import NicAck, NicShim
from tailrace.codec.numbers import ACK_PORT, SHIM_PORT, Subtype
from tests.p4src.frames import roce

HEADERS: tuple[type[Packet], ...] = (
    *(LocalHeader, DataShim, FlowcutAck, FlowPause, Cnm, PathProbe, Detour, NicShim, NicAck),
)
FABRIC = "leaf-spine:leaves=2,spines=2,hosts=4,rate=10Gbps"
SLOW = "link-slow:link=leaf1-spine1,factor=0.1"
RUNS: dict[str, tuple[set[type[Packet]], dict[str, Any]]] = {
    "flowcut": (
        {DataShim, FlowcutAck, FlowPause},
        {
            "scheme": "flowcut:variant=full,growth=0.01,left=0",
            "workload": "permutation:size=48KiB,peers=remote",
            "fault": [SLOW],
        },
    ),
    "nic": ({NicShim, NicAck}, {"scheme": "flowcut:variant=nic", "workload": "permutation:size=32KiB"}),
    "rlb": (
        {Cnm, PathProbe},
        {
            "scheme": "rlb:variant=drill",
            "workload": "incast:degree=7,size=48KiB,peers=remote",
            "topology": "leaf-spine:leaves=3,spines=2,hosts=4,rate=10Gbps",
            "pfc": "xoff=30KB,xon=20KB,headroom=100KB",
        },
    ),
    "valiant": (
        {Detour, DataShim, FlowcutAck},
        {
            "scheme": "flowcut:variant=full,path=valiant",
            "topology": "dragonfly:p=1,a=2,h=1",
            "workload": "permutation:size=16KiB",
        },
    ),
}
"""Runs, and the headers that they send."""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not on PATH (Debian's package tshark)")
    path = tmp_path_factory.mktemp("lua") / "tailrace.lua"
    path.write_text(dissector.lua())
    return path


def shown(script: Path, capture: Path) -> list[Counter[tuple[str, int]]]:
    """By frame, what Wireshark shows: names of our fields with their values."""
    words = [
        "tshark",
        "-X",
        f"lua_script:{script}",
        "-n",
        "-r",
        str(capture),
        "-T",
        "json",
        "--no-duplicate-keys",
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "lua" not in done.stderr.lower(), done.stderr
    return [Counter(fields(frame["_source"]["layers"])) for frame in json.loads(done.stdout)]


def fields(value: Any) -> Iterator[tuple[str, int]]:
    """Our fields within a JSON value."""
    for part in value if isinstance(value, list) else [value]:
        for name, inner in part.items() if isinstance(part, dict) else ():
            if name.startswith("tailrace.") and not isinstance(inner, dict):
                yield from ((name, number(text)) for text in (inner if isinstance(inner, list) else [inner]))
            else:
                yield from fields(inner)


def number(text: str) -> int:
    if text.count(".") == 3:
        return int.from_bytes(bytes(map(int, text.split("."))), "big")
    return int(text, 0)


def seen_by_scapy(packet: Packet) -> Counter[tuple[str, int]]:
    counts: Counter[tuple[str, int]] = Counter()
    layer: Packet | None = packet
    while layer is not None and not isinstance(layer, Raw):
        if isinstance(layer, HEADERS):
            counts += of_layer(layer)
        layer = layer.payload if layer.payload else None
    return counts


def of_layer(layer: Packet) -> Counter[tuple[str, int]]:
    counts: Counter[tuple[str, int]] = Counter()
    for field in layer.fields_desc:
        value = layer.getfieldval(field.name)
        if isinstance(field, PacketListField):
            for stamp in value:
                counts += of_layer(stamp)
        else:
            text = str(value) if isinstance(field, IPField) else str(int(value))
            counts[f"tailrace.{dissector._name(type(layer))}.{field.name}", number(text)] += 1
    return counts


@pytest.mark.parametrize("name", RUNS)
def test_captures_of_runs(name: str, script: Path, tmp_path: Path) -> None:
    headers, keys = RUNS[name]
    tailrace.run(**{"topology": FABRIC, "target": "virtual", **keys}, out=tmp_path / "out", pcap=True)
    capture = tmp_path / "out" / "pcap" / "all.pcapng"
    with PcapNgReader(str(capture)) as reader:
        packets = [Ether(bytes(packet)) for packet in reader]
    seen = [seen_by_scapy(packet) for packet in packets]
    assert headers <= {kind for packet in packets for kind in HEADERS if kind in packet}
    assert shown(script, capture) == seen


def random_frames(rng: random.Random) -> Iterator[Packet]:
    """Each header of ours with random fields, as it is on the wire."""
    ether, inner = (
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02"),
        roce(777, src="10.0.0.1", dst="10.0.0.2"),
    )
    for kind in (FlowcutAck, FlowPause, Cnm):
        yield ether / LocalHeader() / random_layer(rng, kind)
    for kind in (DataShim, PathProbe):
        yield ether / LocalHeader() / random_layer(rng, kind, next_type=0x0800) / inner[IP]
    shim = LocalHeader() / random_layer(rng, DataShim, next_type=0x0800) / inner[IP]
    yield ether / LocalHeader() / random_layer(rng, Detour, next_type=0x88B5) / shim
    addresses = {"src": "10.0.0.1", "dst": "10.0.0.2"}
    yield ether / IP(**addresses) / UDP(sport=1000) / random_layer(rng, NicAck)
    yield ether / IP(**addresses) / UDP(sport=1000) / random_layer(rng, NicShim) / inner[UDP].payload


def random_layer(rng: random.Random, kind: type[Packet], **given: int) -> Packet:
    values: dict[str, Any] = {}
    for field in kind.fields_desc:
        if isinstance(field, PacketListField):
            values[field.name] = [random_layer(rng, Stamp) for _ in range(rng.randint(0, 7))]
        elif field.name != "stamps":
            bits = rng.getrandbits(round(field.sz * 8))
            values[field.name] = (
                ".".join(map(str, bits.to_bytes(4, "big"))) if isinstance(field, IPField) else bits
            )
    return kind(**{**values, **given})


def test_random_fields(script: Path, tmp_path: Path) -> None:
    """Every bit of every field; frames that are cut off give fewer fields, and no error."""
    rng, capture = random.Random(5), tmp_path / "random.pcap"
    frames = [bytes(frame) for _ in range(20) for frame in random_frames(rng)]
    wrpcap(str(capture), [Ether(frame) for frame in frames])
    seen = [seen_by_scapy(Ether(frame)) for frame in frames]
    assert {name.rsplit(".", 1)[0] for counts in seen for name, _ in counts} == {
        f"tailrace.{dissector._name(kind)}" for kind in (*HEADERS, Stamp)
    }
    assert shown(script, capture) == seen
    cut = [frame[: rng.randint(15, 50)] for frame in frames]
    wrpcap(str(capture), [Raw(frame) for frame in cut], linktype=1)
    for full, part in zip(seen, shown(script, capture), strict=True):
        assert not part - full


def test_every_header_is_dissected(capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints a dissector of each subtype, each port and each field."""
    assert main(["dissector"]) == 0
    text = capsys.readouterr().out
    kinds = {dict(condition)["subtype"]: kind for condition, kind in LocalHeader.payload_guess}
    assert kinds.keys() == set(map(int, Subtype))
    assert set(kinds.values()) == set(HEADERS) - {LocalHeader, NicShim, NicAck}
    for port in (SHIM_PORT, ACK_PORT):
        assert f", {port}, " in text
    layers: list[Any] = [*HEADERS, Stamp]
    for kind in layers:
        for field in kind.fields_desc:
            name = f'"tailrace.{dissector._name(kind)}.{field.name}"'
            assert (name in text) != isinstance(field, PacketListField), name
