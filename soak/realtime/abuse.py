# SPDX-License-Identifier: Apache-2.0
"""A client that misbehaves, in a process of its own: soak.realtime.abuse KIND ADDRESS DEVICE SEED S.

    streams  a thousand StreamChannels over several connections, each of which announces itself
    slow     primaries of roles of their own that ask for packet-ins and never read one; Reads of everything
             of which nobody takes the answer; connections that say nothing
    flood    requests without end: Reads of everything, Writes that must be refused, octets that are nothing
    push     becomes primary, pushes another program, and goes away
    usurp    becomes primary, keeps that for a while, and goes away

What it says in the end is one line of JSON. It ends after S seconds, or when it is killed.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import os
import random
import socket
import sys
import time
from typing import Any

import grpc
import grpc.aio
from finsy.proto import p4r, p4r_grpc

from tailrace.controller.session import packet_out_header
from tailrace.p4rt import programs, requests
from tailrace.p4rt.status import Code

KINDS = ("streams", "slow", "flood", "push", "usurp")
"""Methods of Client."""

OTHER = "letflow"
"""The program that is pushed."""

STREAMS = 1000
CONNECTIONS = 8
SLOW = 24
FLOODERS = 6
QUIET_CONNECTIONS = 20
_OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]


class Client:
    """Some connections to one switch."""

    def __init__(self, address: str, device_id: int, rng: random.Random, until_s: float) -> None:
        self.address, self.device_id, self.rng, self.until_s = address, device_id, rng, until_s
        self.became: collections.Counter[str] = collections.Counter()
        self._channels = [grpc.aio.insecure_channel(address, options=_OPTIONS) for _ in range(CONNECTIONS)]
        self.stubs: list[Any] = [p4r_grpc.P4RuntimeStub(channel) for channel in self._channels]

    @property
    def left_s(self) -> float:
        return max(0.0, self.until_s - time.monotonic())

    def hello(self, role: str, election_id: int) -> p4r.StreamMessageRequest:
        """An arbitration message."""
        message = p4r.StreamMessageRequest()
        message.arbitration.device_id = self.device_id
        message.arbitration.role.name = role
        if not role:
            message.arbitration.ClearField("role")
        requests.set_election(message.arbitration.election_id, election_id)
        return message

    def everything(self) -> p4r.ReadRequest:
        """A Read of all tables, counters and registers."""
        request = p4r.ReadRequest(device_id=self.device_id)
        for kind in ("table_entry", "counter_entry", "register_entry", "action_profile_group"):
            getattr(request.entities.add(), kind).SetInParent()
        return request

    def note(self, error: object) -> None:
        code = getattr(error, "code", lambda: None)()
        self.became[getattr(code, "name", type(error).__name__)] += 1

    # ---- kinds ----

    async def streams(self) -> None:
        await asyncio.gather(*(self._stream(number) for number in range(STREAMS)))

    async def _stream(self, number: int) -> None:
        call = self.stubs[number % CONNECTIONS].StreamChannel()
        try:
            await call.write(self.hello(f"crowd{number % 40}", number + 1))
            message = await call.read()
            self.became["answered" if isinstance(message, p4r.StreamMessageResponse) else "ended"] += 1
            await asyncio.sleep(self.left_s)
        except (grpc.RpcError, asyncio.InvalidStateError) as error:
            self.note(error)
        finally:
            call.cancel()

    async def slow(self) -> None:
        quiet = []
        for _ in range(QUIET_CONNECTIONS):
            one = socket.socket(socket.AF_UNIX)
            with contextlib.suppress(OSError):
                one.connect(self.address.partition(":")[2])
                quiet.append(one)
        reads = [self.stubs[number].Read(self.everything()) for number in range(CONNECTIONS)]
        calls = []
        for number in range(SLOW):
            call = self.stubs[number % CONNECTIONS].StreamChannel()
            calls.append(call)
            with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
                await call.write(self.hello(f"slow{number}", 1))
        await asyncio.gather(*(self._ask(call) for call in calls))
        for call in [*reads, *calls]:
            call.cancel()

    async def _ask(self, call: Any) -> None:
        """Asks for packet-ins, as long as anybody takes the questions."""
        message = p4r.StreamMessageRequest()
        message.packet.payload = self.rng.randbytes(1000)
        # all programs of ours answer it with a packet-in
        message.packet.metadata.extend(packet_out_header(programs.load(OTHER), "READ_PORT", 1))
        with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError, asyncio.TimeoutError):
            while self.left_s:
                await asyncio.wait_for(call.write(message), self.left_s)
                self.became["asked"] += 1
                await asyncio.sleep(0.002)

    async def flood(self) -> None:
        await asyncio.gather(*(self._flooder(number) for number in range(FLOODERS)))

    async def _flooder(self, number: int) -> None:
        stub, channel = self.stubs[number], self._channels[number]
        write = p4r.WriteRequest(device_id=self.device_id)
        write.election_id.low = 7
        for _ in range(200):
            write.updates.add(type=p4r.Update.INSERT).entity.table_entry.table_id = self.rng.getrandbits(32)
        methods = ("Write", "SetForwardingPipelineConfig", "GetForwardingPipelineConfig", "Capabilities")
        while self.left_s:
            try:
                match self.rng.randrange(4):
                    case 0:
                        async for _ in stub.Read(self.everything(), timeout=10):
                            pass
                    case 1:
                        await stub.Write(write, timeout=10)
                    case 2:
                        method = f"/p4.v1.P4Runtime/{self.rng.choice(methods)}"
                        octets = self.rng.randbytes(self.rng.randrange(1, 5000))
                        await channel.unary_unary(method, bytes, bytes)(octets, timeout=10)
                    case _:
                        request = p4r.GetForwardingPipelineConfigRequest(device_id=self.device_id)
                        await stub.GetForwardingPipelineConfig(request, timeout=10)
                self.became["OK"] += 1
            except grpc.RpcError as error:
                self.note(error)

    async def push(self) -> None:
        await self._reign(pushes=True)

    async def usurp(self) -> None:
        await self._reign(pushes=False)

    async def _reign(self, *, pushes: bool) -> None:
        call = self.stubs[0].StreamChannel()
        try:
            await call.write(self.hello("", 1))
            answer = (await call.read()).arbitration
            highest = requests.election_of(answer.election_id) + 1
            await call.write(self.hello("", highest))
            while (await call.read()).arbitration.status.code != Code.OK:
                pass
            if pushes:
                request = requests.push(programs.load(OTHER))
                request.device_id = self.device_id
                requests.set_election(request.election_id, highest)
                await self.stubs[0].SetForwardingPipelineConfig(request, timeout=60)
            self.became["OK"] += 1
            await asyncio.sleep(self.left_s)
        except (grpc.RpcError, AttributeError) as error:
            self.note(error)
        finally:
            call.cancel()


async def _run(kind: str, client: Client) -> None:
    await getattr(client, kind)()
    print(json.dumps(client.became), flush=True)
    os._exit(0)  # without a farewell


def main() -> None:
    """The command line."""
    kind, address, device_id, seed, seconds = sys.argv[1:]
    if kind not in KINDS:
        sys.exit(f"abuse: {kind!r}: expected one of {', '.join(KINDS)}")

    async def run() -> None:
        until_s = time.monotonic() + float(seconds)
        await _run(kind, Client(address, int(device_id), random.Random(seed), until_s))

    asyncio.run(run())


if __name__ == "__main__":
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    main()
