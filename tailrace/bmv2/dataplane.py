# SPDX-License-Identifier: Apache-2.0
"""Packets into and out of simple_switch_grpc over its gRPC data plane: no interfaces, no privileges, no
losses.

The service (`p4.bm.DataplaneInterface`) takes a stream of requests and answers with every packet sent, each
with the id of the request that caused it. When the client ends its half of the stream, the server answers
until no packet is left in the switch, and only then ends its own half. So one call is one window, and its
results are complete. The two messages are four fields each, written and read here as protobuf's wire format
asks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import grpc

from tailrace.words.errors import Error

METHOD = "/p4.bm.DataplaneInterface/PacketStream"
TIMEOUT_S = 120.0
_NOT_READY = "not ready"
_READY_S = 10.0
_POLL_S = 0.05
Outputs = list[tuple[int, bytes]]


class DataplaneError(Error, OSError):
    """The switch is gone, or does not come to an end with its packets. One line."""


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def encode_request(request_id: int, device_id: int, port: int, packet: bytes) -> bytes:
    """A PacketStreamRequest: id = 1, device_id = 2, port = 3 as varints, packet = 4 as bytes."""
    numbers = b"\x08" + _varint(request_id) + b"\x10" + _varint(device_id) + b"\x18" + _varint(port)
    return numbers + b"\x22" + _varint(len(packet)) + packet


def decode_response(data: bytes) -> tuple[int, int, bytes]:
    """(request id, port, packet) of a PacketStreamResponse; fields of value 0 are absent on the wire."""
    numbers, packet, at = {1: 0, 3: 0}, b"", 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        value, at = _read_varint(data, at)
        if tag & 7 == 2:
            packet, at = data[at : at + value], at + value
        else:
            numbers[tag >> 3] = value
    return numbers[1], numbers[3], packet


class Dataplane:
    """The data plane of one running simple_switch_grpc."""

    def __init__(self, address: str, device_id: int = 1, timeout_s: float = TIMEOUT_S) -> None:
        self.device_id = device_id
        self.timeout_s = timeout_s
        self.channel = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", -1)])
        self.call = self.channel.stream_stream(METHOD, request_serializer=None, response_deserializer=None)
        self.next_id = 1

    def close(self) -> None:
        self.channel.close()

    def window(self, packets: Sequence[tuple[int, bytes]], timeout_s: float | None = None) -> list[Outputs]:
        """Send packets, each a port and bytes, in order; what each of them caused, likewise, in the order of
        arrival.

        Args:
            timeout_s: for all of them; None: that of all calls.

        Raises:
            DataplaneError: the switch is gone, or has packets after the time-out.
        """
        first = self.next_id
        self.next_id += len(packets)

        def requests() -> Iterator[bytes]:
            for offset, (port, data) in enumerate(packets):
                yield encode_request(first + offset, self.device_id, port, data)

        results: list[Outputs] = [[] for _ in packets]
        most_s = self.timeout_s if timeout_s is None else timeout_s
        end = time.monotonic() + _READY_S
        while True:
            try:
                for message in self.call(requests(), timeout=most_s):
                    request_id, port, data = decode_response(message)
                    results[request_id - first].append((port, data))
            except grpc.RpcError as error:
                # it serves P4Runtime a moment before packets, and has taken none then
                if error.details() == _NOT_READY and time.monotonic() < end:
                    time.sleep(_POLL_S)
                    continue
                raise DataplaneError(f"simple_switch_grpc: data plane: {error.details()}") from error
            return results
