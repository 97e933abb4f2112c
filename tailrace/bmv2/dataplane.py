# SPDX-License-Identifier: Apache-2.0
"""A client of the gRPC data plane of simple_switch_grpc and of the native switch: packets without interfaces,
privileges or losses.

The client sends a stream of packets. The server returns each packet that the switch sends, with the id of the
packet that caused it. When the client closes its half of the stream, the server continues until no packet is
in the switch, and then closes its half. So a call sends one batch of packets, and its results are complete.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import grpc

from tailrace.p4rt.bmv2_messages import SERVICE, STREAM, Packet
from tailrace.spec.errors import Error

TIMEOUT_S = 120.0
_NOT_READY = "not ready"
_READY_S = 10.0
_POLL_S = 0.05
Outputs = list[tuple[int, bytes]]
"""The packets that one packet caused: port and bytes of each."""


class DataplaneError(Error, OSError):
    """The switch is unreachable, or still has packets after the timeout. The message is one line."""


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
        """Sends packets (port, bytes) in order; returns the packets that each caused, in order of arrival.

        Args:
            timeout_s: timeout of the call; None: the default.

        Raises:
            DataplaneError: the switch is unreachable, or still has packets after the timeout.
        """
        first = self.next_id
        self.next_id += len(packets)

        def requests() -> Iterator[Any]:
            for offset, (port, data) in enumerate(packets):
                yield Packet(id=first + offset, device_id=self.device_id, port=port, packet=data)

        results: list[Outputs] = [[] for _ in packets]
        call_timeout_s = self.timeout_s if timeout_s is None else timeout_s
        deadline_s = time.monotonic() + _READY_S
        while True:
            try:
                for message in self.call(requests(), timeout=call_timeout_s):
                    # packets that none of these caused, such as PFC pauses, have no id or another id
                    if first <= message.id < first + len(packets):
                        results[message.id - first].append((message.port, message.packet))
            except grpc.RpcError as error:
                # the data plane is ready a moment after P4Runtime; until then it accepts no packets
                if error.details() == _NOT_READY and time.monotonic() < deadline_s:
                    time.sleep(_POLL_S)
                    continue
                raise DataplaneError(f"data plane: {error.details()}") from error
            return results
