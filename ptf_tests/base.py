# SPDX-License-Identifier: Apache-2.0
"""What every packet test stands on: p4runtime-shell's P4Runtime client, entries by name, and PTF's ports.

Test parameters: grpcaddr, device_id, build, schemes and plugin (folders of compiled
programs: of our tests, ours, and of a folder from outside), target (bmv2 or
native), slow_port, slow_rate_pps, thrift_port. One switch serves all tests: each pushes its own program.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import ptf
from google.protobuf import text_format
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2
from p4runtime_sh.p4runtime import P4RuntimeClient
from ptf import testutils
from ptf.base_tests import BaseTest

TIMEOUT_S = 20.0
ELECTION_ID = (0, 1)
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
        p4info_path, json_path = build / f"{self.program}.p4info.txtpb", build / f"{self.program}.json"
        self.p4info = p4info_pb2.P4Info()
        text_format.Parse(p4info_path.read_text("utf-8"), self.p4info)
        self.device_config = json_path.read_bytes()
        self.inserted: list[dict[str, object]] = []
        self.client = self._connect()
        self.addCleanup(self.client.tear_down)
        self.addCleanup(self._undo)
        self.client.set_fwd_pipe_config(str(p4info_path), str(json_path))

    def _connect(self) -> P4RuntimeClient:
        """A client that is primary. It waits only a moment for the switch itself, so this does first."""
        address = testutils.test_param_get("grpcaddr")
        with grpc.insecure_channel(address) as channel:
            grpc.channel_ready_future(channel).result(timeout=TIMEOUT_S)
        return P4RuntimeClient(int(testutils.test_param_get("device_id", 1)), address, ELECTION_ID)

    def _undo(self) -> None:
        """Runs after every test, also after one whose setUp failed."""
        # BMv2 keeps multicast nodes and clone sessions over a push, so each test removes its own.
        for entity in reversed(self.inserted):
            self._write(p4runtime_pb2.Update.DELETE, **entity)

    # ---- the stream ----

    def send_message(self, **message: object) -> None:
        """Put a message on the stream; the keyword names its kind."""
        self.client.stream_out_q.put(p4runtime_pb2.StreamMessageRequest(**message))

    def receive_message(self, kind: str) -> Any:
        """The next message of a kind; fails when none comes in time."""
        message = self.client.get_stream_packet(kind, timeout=TIMEOUT_S)
        self.assertIsNotNone(message, f"no {kind} came")
        return getattr(message, kind)

    def verify_no_message(self, kind: str) -> None:
        """Fails when a message of a kind has come that nobody took."""
        self.assertTrue(self.client.stream_in_q[kind].empty())

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
        self.client.write_update(p4runtime_pb2.Update(type=kind, entity=p4runtime_pb2.Entity(**entity)))

    def set_default(self, table: str, action: p4runtime_pb2.Action) -> None:
        """Set the action of a miss; of a keyless table: its only one."""
        entry = self.entry(table, {})
        entry.is_default_action = True
        entry.action.action.CopyFrom(action)
        self._write(p4runtime_pb2.Update.MODIFY, table_entry=entry)

    def read(self, **entity: object) -> list[p4runtime_pb2.Entity]:
        """All entities that the switch gives for one read entity."""
        answers = self.client.read_one(p4runtime_pb2.Entity(**entity))
        return [item for answer in answers for item in answer.entities]

    def add_entry(self, table: str, keys: Keys, action: p4runtime_pb2.Action, *, priority: int = 0) -> None:
        """Insert an entry with a direct action."""
        entry = self.entry(table, keys, priority=priority)
        entry.action.action.CopyFrom(action)
        self.write(table_entry=entry)

    def remove_entry(self, table: str, keys: Keys) -> None:
        """Delete an entry that the test has inserted."""
        wanted = self.entry(table, keys)
        for entity in self.inserted:
            entry = entity.get("table_entry")
            if isinstance(entry, p4runtime_pb2.TableEntry) and (entry.table_id, list(entry.match)) == (
                wanted.table_id,
                list(wanted.match),
            ):
                self._write(p4runtime_pb2.Update.DELETE, **entity)
                self.inserted.remove(entity)
                return
        raise KeyError(f"{self.program}: no such entry in {table}")

    def subscribe(self, digest: str) -> None:
        """Be sent the messages of a digest, one at a time."""
        entry = p4runtime_pb2.DigestEntry(digest_id=self.named("digests", digest).preamble.id)
        entry.config.max_list_size = 1
        entry.config.ack_timeout_ns = 10**9
        self.write(digest_entry=entry)

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
