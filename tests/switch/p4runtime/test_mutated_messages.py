# SPDX-License-Identifier: Apache-2.0
"""Mutated P4Runtime messages: an answer with a sensible code, never INTERNAL, and the server lives on."""

from __future__ import annotations

import random
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4i, p4r
from google.protobuf.message import DecodeError, Message

ROUNDS = 1500
ALLOWED = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.ABORTED,
}


def randomise(message: Message, rng: random.Random, ids: list[int], depth: int = 0) -> None:
    """Sets random fields to random values; ids are likely to be ones that exist."""
    for field in message.DESCRIPTOR.fields:
        if rng.random() > (0.5 if depth < 3 else 0.3):
            continue
        count = rng.choice([0, 1, 1, 2]) if field.is_repeated else 1
        for _ in range(count):
            if field.message_type is not None:
                if depth > 5 or field.message_type.full_name.startswith("google"):
                    continue
                repeated = field.is_repeated
                child = getattr(message, field.name)
                child = child.add() if repeated else child
                child.SetInParent()
                randomise(child, rng, ids, depth + 1)
                continue
            value: object
            if field.cpp_type in (field.CPPTYPE_STRING,):
                value = (
                    rng.randbytes(rng.choice([0, 1, 2, 4, 6, 9])) if field.type == field.TYPE_BYTES else "x"
                )
            elif field.cpp_type == field.CPPTYPE_BOOL:
                value = rng.random() < 0.5
            elif field.enum_type is not None:
                value = rng.choice(field.enum_type.values).number
            elif field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
                value = rng.random()
            else:
                unsigned = field.cpp_type in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64)
                edges = [0, 1, 2, 511, 2**31 - 1, *([] if unsigned else [-1, -(2**31)])]
                value = (
                    rng.choice(ids)
                    if field.name.endswith("_id") and rng.random() < 0.8
                    else rng.choice(edges)
                )
            if field.is_repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)


def mutated(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        kind = rng.randrange(4)
        at = rng.randrange(len(out) + 1)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del out[at : at + rng.randrange(8)]
        elif kind == 2:
            out[at:at] = rng.randbytes(rng.randrange(8))
        elif at < len(out):
            out[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
    return bytes(out)


def ids_of(info: p4i.P4Info) -> list[int]:
    kinds = (
        "tables",
        "actions",
        "action_profiles",
        "counters",
        "meters",
        "registers",
        "digests",
        "value_sets",
    )
    return [entity.preamble.id for kind in kinds for entity in getattr(info, kind)] + [1, 2, 3]


def code_of(call, request) -> grpc.StatusCode:
    try:
        result = call(request, timeout=60)
        if not isinstance(result, Message):
            list(result)
    except grpc.RpcError as error:
        code = error.code()
        if code == grpc.StatusCode.UNKNOWN:
            # a batch: every element has an error of its own
            names = [key for key, _ in error.trailing_metadata() or ()]
            assert "grpc-status-details-bin" in names, error.details()
            return grpc.StatusCode.OK
        assert "Traceback" not in (error.details() or "")
        return code
    return grpc.StatusCode.OK


@pytest.mark.parametrize("seed", range(3))
def test_random_writes_and_reads(make_rig, seed: int) -> None:
    """Entities of every kind with random fields."""
    rig = make_rig("p4rt_all")
    rig.primary()
    ids = ids_of(rig.push("p4rt_all"))
    rng = random.Random(seed)
    for _ in range(ROUNDS):
        if rng.random() < 0.6:
            request: Message = rig.write_request()
            for _ in range(rng.choice([1, 1, 3])):
                randomise(request.updates.add(), rng, ids)
            if rng.random() < 0.2:
                request = p4r.WriteRequest.FromString(request.SerializeToString())
            assert code_of(rig.stub.Write, request) in ALLOWED, request
        else:
            request = p4r.ReadRequest(device_id=1)
            for _ in range(rng.choice([1, 1, 2])):
                randomise(request.entities.add(), rng, ids)
            assert code_of(rig.stub.Read, request) in ALLOWED, request
    rig.receive(1, bytes(64))
    assert rig.stub.Capabilities(p4r.CapabilitiesRequest()).p4runtime_api_version


def test_mutated_bytes_of_good_messages(make_rig) -> None:
    """Pipelines and writes with flipped, lost and added bytes."""
    rig = make_rig("p4rt_all")
    rig.primary()
    ids = ids_of(rig.push("p4rt_all"))
    rng = random.Random(11)
    config = rig.config_request("basic_l3")
    config.config.p4_device_config = b'{"pipelines": []}'
    for round_ in range(ROUNDS):
        write = rig.write_request()
        randomise(write.updates.add(), rng, ids)
        source, call = (
            (config, rig.stub.SetForwardingPipelineConfig) if round_ % 5 == 0 else (write, rig.stub.Write)
        )
        try:
            request = type(source).FromString(mutated(source.SerializeToString(), rng))
        except DecodeError:
            continue
        assert code_of(call, request) in ALLOWED, request
    assert rig.stub.Capabilities(p4r.CapabilitiesRequest()).p4runtime_api_version


def test_random_stream_messages(make_rig) -> None:
    """Whatever a stream carries, others can go on."""
    rig = make_rig("p4rt_all")
    rig.primary()
    ids = ids_of(rig.push("p4rt_all"))
    rng = random.Random(5)
    for _ in range(60):
        session = rig.session()
        for _ in range(10):
            message = p4r.StreamMessageRequest()
            randomise(message, rng, ids)
            if message.HasField("arbitration"):
                message.arbitration.ClearField("election_id")
            session.send(message)
        session.close()
        rig.sessions.remove(session)
    assert rig.write(*[]) == []


@pytest.mark.parametrize("name", ["basic_l3", "p4rt_all"])
def test_mutated_programs(make_rig, name: str) -> None:
    """A JSON with one mutated value is refused with a line, or loads."""
    rig = make_rig()
    rig.primary()
    rng = random.Random(3)
    request = rig.config_request(name)
    build = Path(__file__).parents[2] / "programs" / "build"
    text = (build / f"{name}.json").read_bytes()
    for _ in range(60):
        request.config.p4_device_config = mutated(text, rng)
        request.action = 1  # VERIFY
        assert code_of(rig.stub.SetForwardingPipelineConfig, request) in ALLOWED
