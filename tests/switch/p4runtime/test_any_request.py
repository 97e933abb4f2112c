# SPDX-License-Identifier: Apache-2.0
"""Whatever a client sends, in whatever call: an answer with a canonical code, no traceback, bounded memory."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.p4rt.status import MAX_MESSAGE
from tests.long import times
from tests.switch.p4runtime.conftest import TIMEOUT_S, Rig, details_of

CALLS: dict[str, type[Message]] = {
    "Write": p4r.WriteRequest,
    "Read": p4r.ReadRequest,
    "SetForwardingPipelineConfig": p4r.SetForwardingPipelineConfigRequest,
    "GetForwardingPipelineConfig": p4r.GetForwardingPipelineConfigRequest,
    "Capabilities": p4r.CapabilitiesRequest,
    "StreamChannel": p4r.StreamMessageRequest,
}
REFUSALS = {
    grpc.StatusCode[name]
    for name in (
        *("INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED"),
        *("FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED"),
    )
}
MOST_BYTES = 200 << 20
DEEP = 6


def resident() -> int:
    """Bytes of this process, in which the server runs."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def value(rng: random.Random, field: FieldDescriptor, ids: list[int]) -> object:
    """Something for a field, likely to mean something."""
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return rng.random() < 0.5
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        text = rng.choice(["", "\n\x1b[31m", "x" * 300, "AllIngress.mac"])
        return (
            text.encode()
            if field.type == FieldDescriptor.TYPE_BYTES and rng.random() < 0.3
            else (
                rng.randbytes(rng.choice((0, 1, 1, 2, 4, 6, 17)))
                if field.type == FieldDescriptor.TYPE_BYTES
                else text
            )
        )
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        assert field.enum_type is not None
        return rng.choice([*field.enum_type.values_by_number, 0, 77])
    if field.cpp_type in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return rng.choice((0.0, float("nan"), -1.5))
    bits = 64 if field.cpp_type in (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64) else 32
    signed = field.cpp_type in (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64)
    most = (1 << bits - signed) - 1
    chosen = rng.choice([rng.choice(ids), rng.choice(ids), 1, rng.randrange(8), most, rng.randrange(most)])
    return min(-chosen if signed and rng.random() < 0.1 else chosen, most)


def fill(rng: random.Random, message: Message, ids: list[int], depth: int = 0) -> None:
    """Sets about half of the fields, at random."""
    for field in message.DESCRIPTOR.fields:
        if rng.random() < 0.5 or field.name in ("device_id", "election_id", "role", "role_id"):
            continue
        if field.message_type is not None and depth >= DEEP:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            continue
        if field.is_repeated:
            items = getattr(message, field.name)
            for _ in range(rng.choice((0, 1, 1, 2, 5))):
                if field.message_type is not None:
                    fill(rng, items.add(), ids, depth + 1)
                else:
                    items.append(value(rng, field, ids))
        elif field.message_type is not None:
            inner = getattr(message, field.name)
            inner.SetInParent()
            fill(rng, inner, ids, depth + 1)
        else:
            setattr(message, field.name, value(rng, field, ids))


def damage(rng: random.Random, octets: bytes) -> bytes:
    """Octets changed, cut out or put in."""
    changed = bytearray(octets)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(changed) + 1)
        changed[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(4))
    return bytes(changed)


def outcome(call: Callable[[], object]) -> None:
    """Fails where a call does not end as it must."""
    try:
        call()
    except grpc.RpcError as error:
        assert isinstance(error, grpc.Call)
        message = error.details() or ""
        assert len(message) <= MAX_MESSAGE and message.isprintable()
        if error.code() == grpc.StatusCode.UNKNOWN:
            details = details_of(error)
            assert any(detail.canonical_code for detail in details)
            codes = {grpc_code.value[0] for grpc_code in REFUSALS} | {0}
            assert {detail.canonical_code for detail in details} <= codes
            assert all(len(d.message) <= MAX_MESSAGE and d.message.isprintable() for d in details)
        else:
            assert error.code() in REFUSALS, (error.code(), message)


def numbers(rig: Rig) -> list[int]:
    """The ids of the program."""
    info = rig.names.info
    entities = [
        *(e.preamble.id for e in info.tables),
        *(e.preamble.id for e in info.actions),
        *(e.preamble.id for e in info.action_profiles),
        *(e.preamble.id for e in (*info.counters,)),
        *(e.preamble.id for e in (*info.meters,)),
        *(e.preamble.id for e in (*info.registers,)),
        *(e.preamble.id for e in (*info.digests,)),
        *(e.preamble.id for e in (*info.value_sets,)),
    ]
    return [*entities, 0, 1, 2, 3, 511]


def request_of(rng: random.Random, rig: Rig, kind: type[Message]) -> Message:
    """A request that gets past the first checks."""
    message = kind()
    fill(rng, message, numbers(rig))
    for name in ("device_id", "election_id"):
        if name in message.DESCRIPTOR.fields_by_name:
            if name == "device_id":
                setattr(message, name, 1)
            else:
                message.election_id.low = 1
    if isinstance(message, p4r.SetForwardingPipelineConfigRequest):
        message.CopyFrom(rig.config_request("p4rt_all", rng.randrange(6)))
        if rng.random() < 0.7:
            entity = rng.choice((*message.config.p4info.tables, *message.config.p4info.actions))
            fill(rng, entity, numbers(rig))
        if rng.random() < 0.3:
            message.config.ClearField("p4info")
    if isinstance(message, p4r.StreamMessageRequest) and message.HasField("arbitration"):
        message.arbitration.device_id = 1
    return message


@settings(max_examples=times(2000, 8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 40), raw=st.booleans(), name=st.sampled_from(sorted(CALLS)))
def test_every_call_is_answered(
    rig: Rig, caplog: pytest.LogCaptureFixture, seed: int, raw: bool, name: str
) -> None:
    """Requests at random, well-formed and damaged."""
    rng = random.Random(seed)
    octets = request_of(rng, rig, CALLS[name]).SerializeToString()
    octets = damage(rng, octets) if raw else octets
    before = resident()
    method = f"/p4.v1.P4Runtime/{name}"
    if name == "StreamChannel":
        streams = rig.channel.stream_stream(method, None, None)
        outcome(lambda: list(streams(iter([octets] * 3), timeout=TIMEOUT_S)))
    elif name == "Read":
        outcome(lambda: list(rig.channel.unary_stream(method, None, None)(octets, timeout=TIMEOUT_S)))
    else:
        outcome(lambda: rig.channel.unary_unary(method, None, None)(octets, timeout=TIMEOUT_S))
    assert resident() - before < MOST_BYTES
    bad = [r for r in caplog.records if r.levelno >= logging.ERROR or r.exc_info]
    assert not bad, [r.getMessage() for r in bad]
    # and it is alive
    rig.stub.GetForwardingPipelineConfig(
        p4r.GetForwardingPipelineConfigRequest(device_id=1), timeout=TIMEOUT_S
    )


@pytest.mark.parametrize("name", ["basic_l3", "p4rt_all"])
def test_damaged_programs(rig: Rig, name: str) -> None:
    """A JSON with a few changed bytes is refused with a line, or loads."""
    rng, request = random.Random(3), rig.config_request(name, action=1)  # VERIFY
    text = request.config.p4_device_config
    for _ in range(60):
        request.config.p4_device_config = damage(rng, text)
        outcome(lambda: rig.stub.SetForwardingPipelineConfig(request, timeout=TIMEOUT_S))
