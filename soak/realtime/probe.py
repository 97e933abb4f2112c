# SPDX-License-Identifier: Apache-2.0
"""How long packets and calls take meanwhile, seen by two threads of the harness.

Packets are datagrams of hosts' own stacks, each with its time of sending: between two hosts of a switch that
nobody kills, and between hosts of different leaves, by several source ports, so that all spines are passed.
Calls are a Read and a Write of a role of its own at such a switch.
"""

from __future__ import annotations

import selectors
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc
from fabric_net import FabricNet
from fabric_sandbox import inside
from finsy.proto import p4r, p4r_grpc

from soak.realtime.place import Place
from tailrace.p4rt import requests
from tailrace.p4rt.programs import Program

SOURCE_PORTS = tuple(range(20_000, 20_008))
PORT = 20_100
ROUND_S = 0.1
CALL_S = 0.25
DEADLINE_S = 30.0
ROLE = "probe"
_FORMAT = struct.Struct("!Qd")

Latency = tuple[float, float]
"""When something was sent or called, seconds since the beginning, and how long it took, seconds."""


class Packets:
    """Sends and receives until `stop`. `near` and `far` are what came, `sent` how many went out of each."""

    def __init__(self, place: Place, net: FabricNet, began_s: float) -> None:
        first, second, third, _ = place.topology.hosts
        self.near: list[Latency] = []
        self.far: list[Latency] = []
        self.sent = {"near": 0, "far": 0}
        self.last_far_s: dict[int, float] = {}
        self._began_s = began_s
        self._stopped = threading.Event()
        self._senders = list(_sockets(net.pid(first.name), SOURCE_PORTS))
        self._receivers = [next(_sockets(net.pid(host.name), (PORT,))) for host in (second, third)]
        self._to = [(host.ip, PORT) for host in (second, third)]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        for one in [*self._senders, *self._receivers]:
            one.close()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for receiver, found in zip(self._receivers, (self.near, self.far), strict=True):
                selector.register(receiver, selectors.EVENT_READ, found)
            due_s = time.monotonic()
            while not self._stopped.is_set():
                now_s = time.monotonic()
                if now_s >= due_s:
                    due_s = max(due_s + ROUND_S, now_s)
                    self._send()
                for key, _ in selector.select(max(0.0, due_s - time.monotonic())):
                    self._receive(key.fileobj, key.data)

    def _send(self) -> None:
        for number, sender in enumerate(self._senders):
            for kind, to in zip(("near", "far"), self._to, strict=True):
                if kind == "near" and number:
                    continue
                try:
                    sender.sendto(_FORMAT.pack(number, time.monotonic()), to)
                    self.sent[kind] += 1
                except OSError:
                    continue  # the interface is down just now

    def _receive(self, receiver: Any, found: list[Latency]) -> None:
        number, sent_s = _FORMAT.unpack(receiver.recv(_FORMAT.size))
        now_s = time.monotonic()
        found.append((sent_s - self._began_s, now_s - sent_s))
        if found is self.far:
            self.last_far_s[number] = sent_s

    def answered_since(self, at_s: float) -> bool:
        """Whether a datagram of each source port has crossed the network that was sent after a time."""
        return all(self.last_far_s.get(number, 0.0) > at_s for number in range(len(SOURCE_PORTS)))


def _sockets(pid: int, ports: tuple[int, ...]) -> Iterator[socket.socket]:
    for port in ports:
        with inside(pid):
            one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.bind(("0.0.0.0", port))  # noqa: S104 - all addresses of that host
        one.setblocking(False)
        yield one


class Calls:
    """Reads and writes until `stop`. `failed` counts codes other than OK, which are answers, too."""

    def __init__(self, place: Place, switch: str, began_s: float) -> None:
        plan = place.plans[switch]
        self.reads: list[Latency] = []
        self.writes: list[Latency] = []
        self.failed: dict[str, int] = {}
        self._device_id, self._program, self._began_s = plan.device_id, place.program, began_s
        self._channel = grpc.insecure_channel(plan.address, options=[("grpc.use_local_subchannel_pool", 1)])
        self._stub: Any = p4r_grpc.P4RuntimeStub(self._channel)
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._run, self._stream)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._threads[0].join()
        self._channel.close()
        self._threads[1].join()

    def _hello(self) -> Iterator[p4r.StreamMessageRequest]:
        message = p4r.StreamMessageRequest()
        message.arbitration.device_id = self._device_id
        message.arbitration.role.name = ROLE
        requests.set_election(message.arbitration.election_id, 1)
        yield message
        self._stopped.wait()

    def _stream(self) -> None:
        """Keeps the role, and takes what comes for it."""
        while not self._stopped.is_set():
            try:
                for _ in self._stub.StreamChannel(self._hello()):
                    pass
            except (grpc.RpcError, ValueError):
                self._stopped.wait(0.2)

    def _run(self) -> None:
        counter = _counter(self._program)
        read = p4r.ReadRequest(device_id=self._device_id)
        read.entities.add().counter_entry.CopyFrom(counter)
        write = p4r.WriteRequest(device_id=self._device_id, role=ROLE)
        requests.set_election(write.election_id, 1)
        update = write.updates.add(type=p4r.Update.MODIFY).entity.counter_entry
        update.CopyFrom(counter)
        update.data.packet_count = 0
        while not self._stopped.wait(CALL_S):
            self._time(self.reads, lambda: list(self._stub.Read(read, timeout=DEADLINE_S)))
            self._time(self.writes, lambda: self._stub.Write(write, timeout=DEADLINE_S))

    def _time(self, found: list[Latency], call: Any) -> None:
        before_s = time.monotonic()
        try:
            call()
        except grpc.RpcError as error:
            name = error.code().name
            self.failed[name] = self.failed.get(name, 0) + 1
        found.append((before_s - self._began_s, time.monotonic() - before_s))


def _counter(program: Program) -> p4r.CounterEntry:
    """A cell that nobody counts in: the last one of the first counter."""
    counter = program.p4info.counters[0]
    entry = p4r.CounterEntry(counter_id=counter.preamble.id)
    entry.index.index = counter.size - 1
    return entry
