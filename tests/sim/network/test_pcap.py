# SPDX-License-Identifier: Apache-2.0
"""Captures can be read by others, to the nanosecond."""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.utils import PcapNgReader

from tailrace.sim.network import NetworkError
from tests.sim.network.l3 import Frame, attach_all, network, packet, topology


def test_scapy_reads_frames_stamps_lengths_and_interfaces(tmp_path: Path) -> None:
    topo = topology()
    frame = packet(topo, "h1", "h3", bytes(67))
    with network(topo) as net:
        nics = attach_all(net)
        wires = net.wires_between("h1", "leaf1") + net.wires_between("leaf2", "h3")
        net.capture(tmp_path / "a.pcapng", wires)
        nics["h1"].script = [(0, Frame(frame)), (5_000_000_000, Frame(frame, 899))]
        net.run()
        arrived = [time for time, _, _ in nics["h3"].arrived]
    with PcapNgReader(str(tmp_path / "a.pcapng")) as reader:
        packets = list(reader)
    assert [bytes(p)[14:34] for p in packets[:1]] == [frame[14:34]]
    stamps = [int(p.time * 10**9) for p in packets]
    assert stamps == [1101, arrived[0], 5_000_000_000 + 2000, arrived[1]]
    assert [p.wirelen for p in packets] == [101, 101, 1000, 1000]
    assert [p.sniffed_on for p in packets] == ["h1:0>leaf1:1", "leaf2:1>h3:0"] * 2


def test_frames_of_all_wires_are_in_the_order_of_their_times(tmp_path: Path) -> None:
    """Every arrival once, the lost ones with a comment; the file is complete whenever the network stands."""
    path = tmp_path / "all.pcapng"
    topo = topology("leaf-spine:leaves=3,spines=2,hosts=2,rate=1Gbps,delay=300ns")
    with network(topo, seed=3) as net:
        nics = attach_all(net)
        net.drop("leaf1", "spine1", 0.2)
        net.capture(path)
        net.capture(tmp_path / "one.pcapng", net.wires_between("h1", "leaf1"))
        for source, nic in nics.items():
            frames = [packet(topo, source, target, bytes([i]) * 100) for i in range(5) for target in nics]
            nic.script = [(i * 50, Frame(frame)) for i, frame in enumerate(frames)]
        for until_ns in (3000, 30_000, None):
            net.run(until_ns)
            traffic = net.traffic()
            with PcapNgReader(str(path)) as reader:
                packets = list(reader)
            stamps = [int(p.time * 10**9) for p in packets]
            assert len(stamps) == traffic.delivered + traffic.dropped > 0
            assert stamps == sorted(stamps)
            lost = [p for p in packets if p.comment is not None]
            assert {p.comment for p in lost} <= {b"lost on the wire"}
            assert len(lost) == traffic.dropped
        with PcapNgReader(str(tmp_path / "one.pcapng")) as reader:
            assert len(list(reader)) == 5 * len(nics)
    assert traffic.dropped > 0


def test_a_disk_that_is_full_ends_the_run() -> None:
    topo = topology()
    with network(topo) as net:
        nics = attach_all(net)
        net.capture(Path("/dev/full"))
        nics["h1"].script = [(0, Frame(packet(topo, "h1", "h3", bytes(67))))]
        with pytest.raises(NetworkError, match="cannot write the capture /dev/full: No space left"):
            net.run()


def test_a_capture_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with (
        network(topology()) as net,
        pytest.raises(NetworkError, match=r"cannot write the capture .*: No such file"),
    ):
        net.capture(tmp_path / "none" / "a.pcapng")
