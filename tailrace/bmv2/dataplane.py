# SPDX-License-Identifier: Apache-2.0
"""Packets into and out of simple_switch_grpc over its gRPC data plane: no interfaces, no privileges, no
losses. The native switch has it, too.

The service takes a stream of packets and answers with every packet sent, each with the id of the one that
caused it. When the client ends its half of the stream, the server answers until no packet is left in the
switch, and only then ends its own half. So one call is one window, and its results are complete.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import grpc

from tailrace.p4rt.dataplane import SERVICE, STREAM, Packet
from tailrace.spec.errors import Error

TIMEOUT_S = 120.0
_NOT_READY = "not ready"
_READY_S = 10.0
_POLL_S = 0.05
Outputs = list[tuple[int, bytes]]


class DataplaneError(Error, OSError):
    """The switch is gone, or does not come to an end with its packets. One line."""


class Dataplane:
    """The data plane of one running switch."""

    def __init__(self, address: str, device_id: int = 1, timeout_s: float = TIMEOUT_S) -> None:
        self.device_id = device_id
        self.timeout_s = timeout_s
        self.channel = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", -1)])
        self.call = self.channel.stream_stream(
            f"/{SERVICE}/{STREAM}",
            request_serializer=Packet.SerializeToString,
            response_deserializer=Packet.FromString,
        )
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

        def requests() -> Iterator[Any]:
            for offset, (port, data) in enumerate(packets):
                yield Packet(id=first + offset, device_id=self.device_id, port=port, packet=data)

        results: list[Outputs] = [[] for _ in packets]
        most_s = self.timeout_s if timeout_s is None else timeout_s
        end = time.monotonic() + _READY_S
        while True:
            try:
                for message in self.call(requests(), timeout=most_s):
                    # what none of them has caused, a pause for one, has no id, or another one
                    if first <= message.id < first + len(packets):
                        results[message.id - first].append((message.port, message.packet))
            except grpc.RpcError as error:
                # it serves P4Runtime a moment before packets, and has taken none then
                if error.details() == _NOT_READY and time.monotonic() < end:
                    time.sleep(_POLL_S)
                    continue
                raise DataplaneError(f"data plane: {error.details()}") from error
            return results
