# SPDX-License-Identifier: Apache-2.0
"""Exports a saved trace as a PTF test: one file that contains the program.

The test needs only ptf, grpc and P4Runtime's messages (package p4runtime). It runs in the harness of the
packet tests (scripts/run_ptf.py --plugin DIR), or in ptf itself with the test parameters grpcaddr and, if the
device id is not 1, device_id.

All tests have the same code; the trace's values are constants, written as Python literals.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from tailrace.spec import SpecError
from tailrace.switch.replay.document import SavedTrace

_WIDTH = 96  # characters of base 64 in a line
_MIN_FRAME_BYTES = 14  # an Ethernet header


def test_source(saved: SavedTrace) -> str:
    """The source of the test.

    Raises:
        SpecError: PTF cannot express the trace; the message begins with the key.
    """
    document = saved.document
    cpu = document.switch.cpu_port
    for key, frames in (("packet", (document.packet,)), ("expected.sent", document.expected.sent)):
        for frame in frames:
            if frame.port == cpu:
                raise SpecError(
                    f"{key}: PTF cannot express it: port {cpu} is the CPU port, which has no interface"
                )
            if len(frame.data) < _MIN_FRAME_BYTES:
                raise SpecError(
                    f"{key}: PTF cannot express it: frames below {_MIN_FRAME_BYTES} bytes fit no interface"
                )
    values = {
        "P4INFO": _compressed(saved.p4info.SerializeToString(deterministic=True)),
        "DEVICE_CONFIG": _compressed(saved.json),
        "WRITE_REQUEST": _concatenated(document.write_request.splitlines(keepends=True)),
        "PACKET": ascii((document.packet.port, document.packet.frame)),
        "EXPECTED": _list((frame.port, frame.frame) for frame in document.expected.sent),
    }
    constants = "\n".join(f"{name} = {value}" for name, value in values.items())
    return f"{_HEAD}\n{constants}\n\n\n{_CODE}"


def _compressed(data: bytes) -> str:
    text = base64.b64encode(zlib.compress(data, 9)).decode()
    return _concatenated(text[start : start + _WIDTH] for start in range(0, len(text), _WIDTH))


def _concatenated(parts: Iterable[str]) -> str:
    lines = "".join(f"    {part!a}\n" for part in parts)
    return f"(\n{lines})" if lines else "''"


def _list(values: Iterator[Any]) -> str:
    lines = "".join(f"    {value!a},\n" for value in values)
    return f"[\n{lines}]" if lines else "[]"


_HEAD = '''\
"""A packet and its outcome: made from a saved trace by tailrace trace --export.

P4INFO and DEVICE_CONFIG are the program (zlib, base 64). WRITE_REQUEST is a p4.v1.WriteRequest
in text format, whose updates are written one by one. PACKET and EXPECTED are ports, with frames in base 16.
"""

import base64
import queue
import zlib

import grpc
import ptf
from google.protobuf import text_format
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc
from ptf import testutils
from ptf.base_tests import BaseTest

TIMEOUT_S = 20.0
QUIET_S = 1.0
ELECTION_ID = p4runtime_pb2.Uint128(low=1)
'''

_CODE = '''\
class SavedTrace(BaseTest):
    """Gives the switch the program and the packet's read set only, sends the packet, compares outputs."""

    def setUp(self):
        super().setUp()
        self.dataplane = ptf.dataplane_instance
        self.device_id = int(testutils.test_param_get("device_id", 1))
        self.undo = []
        channel = grpc.insecure_channel(testutils.test_param_get("grpcaddr"))
        self.addCleanup(channel.close)
        grpc.channel_ready_future(channel).result(timeout=TIMEOUT_S)
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(channel)
        self.become_primary()
        self.addCleanup(self.delete)
        self.push()
        for update in text_format.Parse(WRITE_REQUEST, p4runtime_pb2.WriteRequest()).updates:
            self.write(update)
            if update.type == p4runtime_pb2.Update.INSERT:
                self.undo.append(update.entity)
        self.dataplane.flush()

    def become_primary(self):
        requests = queue.Queue()
        # kept open: a client whose stream ends is no longer primary
        self.stream = self.stub.StreamChannel(iter(requests.get, None))
        self.addCleanup(self.stream.cancel)
        self.addCleanup(requests.put, None)
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = self.device_id
        request.arbitration.election_id.CopyFrom(ELECTION_ID)
        requests.put(request)
        self.assertEqual(0, next(self.stream).arbitration.status.code)

    def push(self):
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            election_id=ELECTION_ID,
            action=p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
        )
        request.config.p4info.ParseFromString(zlib.decompress(base64.b64decode(P4INFO)))
        request.config.p4_device_config = zlib.decompress(base64.b64decode(DEVICE_CONFIG))
        self.stub.SetForwardingPipelineConfig(request)

    def write(self, update):
        request = p4runtime_pb2.WriteRequest(device_id=self.device_id, election_id=ELECTION_ID)
        request.updates.append(update)
        self.stub.Write(request, timeout=TIMEOUT_S)

    def delete(self):
        # BMv2 keeps groups and sessions over a push
        for entity in reversed(self.undo):
            self.write(p4runtime_pb2.Update(type=p4runtime_pb2.Update.DELETE, entity=entity))

    def runTest(self):
        port, frame = PACKET
        testutils.send_packet(self, port, bytes.fromhex(frame))
        received = []
        for number in range(len(EXPECTED) + 1):
            timeout = TIMEOUT_S if number < len(EXPECTED) else QUIET_S
            poll = testutils.dp_poll(self, timeout=timeout)
            if not isinstance(poll, self.dataplane.PollSuccess):
                break
            received.append((poll.port, bytes(poll.packet).hex()))
        # the order of frames on different ports is undefined
        self.assertEqual(sorted(EXPECTED), sorted(received))
'''
