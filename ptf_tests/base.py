# SPDX-License-Identifier: Apache-2.0
"""What every packet test stands on: a P4Runtime client on the PyPI stubs, entries by name, and PTF's ports.

Test parameters: grpcaddr, device_id, build and schemes (folders of the compiled programs), target (bmv2 or
native), slow_port, slow_rate_pps, thrift_port. One switch serves all tests: each pushes its own program.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import ptf
from google.protobuf import text_format
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc
from ptf import testutils
from ptf.base_tests import BaseTest

TIMEOUT_S = 20.0
# A key: its value, or (value, prefix length), or (value, mask). A field left out matches everything.
Keys = dict[str, "int | tuple[int, int]"]


def octets(value: int) -> bytes:
    """The shortest bytestring that holds the value."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


class P4RuntimeTest(BaseTest):
    """A test of the program called `program`, in the folder that the test parameter `folder` names."""

    program = ""
    folder = "build"

    def setUp(self) -> None:
        super().setUp()
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()
        build = Path(testutils.test_param_get(self.folder))
        self.device_id = int(testutils.test_param_get("device_id", 1))
        self.p4info = p4info_pb2.P4Info()
        text_format.Parse((build / f"{self.program}.p4info.txtpb").read_text("utf-8"), self.p4info)
        self.election_id = p4runtime_pb2.Uint128(high=0, low=1)
        self.channel = grpc.insecure_channel(testutils.test_param_get("grpcaddr"))
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(self.channel)
        self.outgoing: queue.Queue[p4runtime_pb2.StreamMessageRequest | None] = queue.Queue()
        self.incoming: queue.Queue[p4runtime_pb2.StreamMessageResponse] = queue.Queue()
        self.inserted: list[dict[str, object]] = []
        self.addCleanup(self.channel.close)
        self._start_stream()
        self.addCleanup(self._undo)
        self.device_config = (build / f"{self.program}.json").read_bytes()
        self._push(self.device_config)

    def _undo(self) -> None:
        """Runs after every test, also after one whose setUp failed."""
        # BMv2 keeps multicast nodes and clone sessions over a push, so each test removes its own.
        for entity in reversed(self.inserted):
            self._write(p4runtime_pb2.Update.DELETE, **entity)

    def _start_stream(self) -> None:
        grpc.channel_ready_future(self.channel).result(timeout=TIMEOUT_S)
        stream = self.stub.StreamChannel(self._requests())

        def read() -> None:
            try:
                for message in stream:
                    self.incoming.put(message)
            except grpc.RpcError:
                return  # the test is over, or fails where it waits for the message

        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()
        self.addCleanup(self._end_stream)
        arbitration = p4runtime_pb2.MasterArbitrationUpdate(
            device_id=self.device_id, election_id=self.election_id
        )
        self.send_message(arbitration=arbitration)
        self.assertEqual(0, self.receive_message("arbitration").status.code)

    def _end_stream(self) -> None:
        self.outgoing.put(None)
        self.reader.join(TIMEOUT_S)

    def _requests(self) -> Iterator[p4runtime_pb2.StreamMessageRequest]:
        while (message := self.outgoing.get()) is not None:
            yield message

    def _push(self, device_config: bytes) -> None:
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(
            device_id=self.device_id, election_id=self.election_id
        )
        request.action = request.VERIFY_AND_COMMIT
        request.config.p4info.CopyFrom(self.p4info)
        request.config.p4_device_config = device_config
        self.stub.SetForwardingPipelineConfig(request, timeout=TIMEOUT_S)

    # ---- the stream ----

    def send_message(self, **message: object) -> None:
        """Put a message on the stream; the keyword names its kind."""
        self.outgoing.put(p4runtime_pb2.StreamMessageRequest(**message))

    def receive_message(self, kind: str) -> Any:
        """The next message of a kind; fails when none comes in time."""
        while True:
            message = self.incoming.get(timeout=TIMEOUT_S)
            if message.WhichOneof("update") == kind:
                return getattr(message, kind)

    # ---- names ----

    def named(self, collection: str, name: str) -> Any:
        for item in getattr(self.p4info, collection):
            if name in (item.preamble.name, item.preamble.alias):
                return item
        raise KeyError(f"{self.program}: no {name} among {collection}")

    def action(self, name: str, **arguments: int) -> p4runtime_pb2.Action:
        """An action with its arguments by name."""
        info = self.named("actions", name)
        action = p4runtime_pb2.Action(action_id=info.preamble.id)
        for param in info.params:
            action.params.add(param_id=param.id, value=octets(arguments[param.name]))
        return action

    def entry(self, table: str, keys: Keys, *, priority: int = 0) -> p4runtime_pb2.TableEntry:
        """An entry without action."""
        info = self.named("tables", table)
        entry = p4runtime_pb2.TableEntry(table_id=info.preamble.id, priority=priority)
        for field in info.match_fields:
            value = keys.get(field.name)
            if value is None:
                continue
            match = entry.match.add(field_id=field.id)
            if isinstance(value, int):
                match.exact.value = octets(value)
            elif field.match_type == field.LPM:
                match.lpm.value, match.lpm.prefix_len = octets(value[0]), value[1]
            else:
                match.ternary.value, match.ternary.mask = octets(value[0]), octets(value[1])
        return entry

    # ---- writing and reading ----

    def write(self, **entity: object) -> None:
        """Insert one entity; the keyword names its kind. The end of the test deletes it."""
        self._write(p4runtime_pb2.Update.INSERT, **entity)
        self.inserted.append(entity)

    def _write(self, kind: int, **entity: object) -> None:
        request = p4runtime_pb2.WriteRequest(device_id=self.device_id, election_id=self.election_id)
        request.updates.add(type=kind, entity=p4runtime_pb2.Entity(**entity))
        self.stub.Write(request, timeout=TIMEOUT_S)

    def set_default(self, table: str, action: p4runtime_pb2.Action) -> None:
        """Set the action of a miss; of a keyless table: its only one."""
        entry = self.entry(table, {})
        entry.is_default_action = True
        entry.action.action.CopyFrom(action)
        self._write(p4runtime_pb2.Update.MODIFY, table_entry=entry)

    def read(self, **entity: object) -> list[p4runtime_pb2.Entity]:
        """All entities that the switch gives for one read entity."""
        request = p4runtime_pb2.ReadRequest(device_id=self.device_id)
        request.entities.append(p4runtime_pb2.Entity(**entity))
        return [found for answer in self.stub.Read(request, timeout=TIMEOUT_S) for found in answer.entities]

    def add_entry(self, table: str, keys: Keys, action: p4runtime_pb2.Action, *, priority: int = 0) -> None:
        """Insert an entry with a direct action."""
        entry = self.entry(table, keys, priority=priority)
        entry.action.action.CopyFrom(action)
        self.write(table_entry=entry)

    def add_multicast_group(self, group: int, replicas: list[tuple[int, int]]) -> None:
        """Insert a multicast group of (port, instance)."""
        engine = p4runtime_pb2.PacketReplicationEngineEntry()
        engine.multicast_group_entry.multicast_group_id = group
        for port, instance in replicas:
            engine.multicast_group_entry.replicas.add(egress_port=port, instance=instance)
        self.write(packet_replication_engine_entry=engine)

    def add_clone_session(self, session: int, port: int) -> None:
        """Insert a clone session with one port."""
        engine = p4runtime_pb2.PacketReplicationEngineEntry()
        engine.clone_session_entry.session_id = session
        engine.clone_session_entry.replicas.add(egress_port=port, instance=1)
        self.write(packet_replication_engine_entry=engine)
