# SPDX-License-Identifier: Apache-2.0
"""The port of a NIC in Python's hands, as the hosts' driver uses it."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from tailrace.codec.build import codec_extension
from tailrace.codec.calls import ACK, PAYLOAD, RAW, Packet
from tailrace.codec.nic import port
from tailrace.codec.numbers import Opcode
from tailrace.codec.table import icrc_mask, offsets
from tailrace.codec.templates import HostAddress, data_headers, reth

HERE = HostAddress("02:00:0a:00:00:01", "02:00:00:00:00:fe", "10.0.0.1", "10.0.1.2")


class Nic:
    """Says what it is told to say, and keeps frames as they are."""

    idle = False

    def __init__(self, *said: Packet | int | None) -> None:
        self.said = list(said)
        self.frames: list[tuple[int, bytes, int]] = []

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        self.frames.append((now_ns, frame, virtual_bytes))

    def next_packet(self, now_ns: int) -> Packet | int | None:
        return self.said.pop(0)


class WithTemplate(Nic):
    """Sends data, too."""

    def template(self, template_id: int) -> tuple[bytes, bytes]:
        return data_headers(HERE, sport=9, qpn=2, ecn=False, shimmed=False), reth(4)


def test_frames_come_as_they_are():
    """Anything at all, a virtual payload or none."""
    nic = Nic()
    its_port = port(nic)
    its_port.arrive(5, b"", 0)
    its_port.arrive(6, bytearray(b"anything"), 70_000)  # type: ignore[arg-type]
    assert [(5, b"", 0), (6, b"anything", 70_000)] == nic.frames


def test_what_a_nic_says_comes_out():
    """A frame, a time, nothing; times that have passed are the next ns."""
    its_port = port(Nic((RAW, b"frame", 3), 90, 7, None))
    assert [(b"frame", 3), 90, 11, None] == [its_port.depart(10) for _ in range(4)]


def test_payloads_stand_in_the_frame():
    """Headers, payload, padding and ICRC in one piece."""
    data_fields = 5 | Opcode.WRITE_MIDDLE << 16
    sent = port(WithTemplate((PAYLOAD, 7, data_fields, b"abcde"))).depart(0)
    assert isinstance(sent, tuple)
    frame, virtual_bytes = sent
    assert (54 + 5 + 3 + 4, 0) == (len(frame), virtual_bytes)
    assert b"abcde\0\0\0" == frame[54:-4]


def test_a_packet_without_template_is_refused():
    """Frames alone are what such a NIC can send."""
    with pytest.raises(TypeError, match="without a method template"):
        port(Nic((ACK, 0, 0))).depart(0)


@pytest.mark.parametrize(
    "numbers", [(-1, b"x"), (2**64, b"x"), (0, "text"), (0, b"x", -1), (0, bytes(3 << 20))]
)
def test_arrivals_that_are_none_are_refused(numbers: Any):
    """By an exception, and the NIC hears nothing."""
    nic = Nic()
    with pytest.raises((OverflowError, TypeError, ValueError)):
        port(nic).arrive(*numbers)
    assert [] == nic.frames


def test_what_is_no_nic_is_refused():
    """By the name of what it lacks."""

    class Deaf:
        def next_packet(self, now_ns: int) -> None:
            return None

    with pytest.raises(AttributeError, match="on_data"):
        port(Deaf())  # type: ignore[arg-type]


def test_a_port_and_its_nic_go_together():
    """Also when the NIC holds its port."""
    nic = Nic()
    nic.port = port(nic)  # type: ignore[attr-defined]
    gone = weakref.ref(nic)
    del nic
    gc.collect()
    assert gone() is None


def test_a_codec_that_makes_no_sense_is_refused():
    """One name too few, one length too many, a byte beyond the headers."""
    codec = codec_extension().Codec
    values = dict(offsets())
    codec(values, icrc_mask())
    with pytest.raises(KeyError, match="ip_ttl"):
        codec({name: value for name, value in values.items() if name != "ip_ttl"}, icrc_mask())
    for wrong in ({"icrc_bytes": 5}, {"reth_bytes": 500}):
        with pytest.raises(ValueError, match="does not support this layout"):
            codec(values | wrong, icrc_mask())
    with pytest.raises(ValueError, match="does not support this layout"):
        codec(values, (9999,))
