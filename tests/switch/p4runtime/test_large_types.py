# SPDX-License-Identifier: Apache-2.0
"""A few lines of P4Info can say a type of millions of parts: it is refused before they are made."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from finsy.proto import p4i, p4t
from google.protobuf import text_format

from tailrace.p4rt.status import Code, P4RtError
from tailrace.switch.compiler import load_program
from tailrace.switch.p4runtime.entities import p4types
from tailrace.switch.p4runtime.entities.schema import build_schema
from tests.switch.p4runtime.conftest import BUILD

DEPTH = 20
"""Each level has the one below twice."""


def named(name: str) -> p4t.P4DataTypeSpec:
    return p4t.P4DataTypeSpec(struct=p4t.P4NamedType(name=name))


def doubling(info: p4i.P4Info, leaf: p4t.P4StructTypeSpec) -> p4t.P4DataTypeSpec:
    """2^DEPTH leaves."""
    for level in range(DEPTH):
        members = info.type_info.structs[f"s{level}"].members
        for name in "ab":
            members.add(name=name, type_spec=named(f"s{level + 1}"))
    info.type_info.structs[f"s{DEPTH}"].CopyFrom(leaf)
    return named("s0")


def of_bits(info: p4i.P4Info) -> p4t.P4DataTypeSpec:
    leaf = p4t.P4StructTypeSpec()
    leaf.members.add(name="x").type_spec.bitstring.bit.bitwidth = 8
    return doubling(info, leaf)


def of_nothing(info: p4i.P4Info) -> p4t.P4DataTypeSpec:
    return doubling(info, p4t.P4StructTypeSpec())


def of_headers(info: p4i.P4Info) -> p4t.P4DataTypeSpec:
    fields = info.type_info.headers["wide"].members
    for number in range(1000):
        fields.add(name=f"f{number}").type_spec.bit.bitwidth = 8
    spec = p4t.P4DataTypeSpec()
    for _ in range(1000):
        spec.tuple.members.add().header.name = "wide"
    return spec


@pytest.mark.parametrize("bomb", [of_bits, of_nothing, of_headers])
@pytest.mark.parametrize("owner", ["registers", "digests"])
def test_a_type_of_millions_of_parts(bomb: Callable[[p4i.P4Info], p4t.P4DataTypeSpec], owner: str) -> None:
    """INVALID_ARGUMENT with the owner and the limit, once it is reached."""
    info = text_format.Parse((BUILD / "p4rt_all.p4info.txtpb").read_text(), p4i.P4Info())
    model = load_program((BUILD / "p4rt_all.json").read_bytes()).model
    getattr(info, owner)[0].type_spec.CopyFrom(bomb(info))
    with pytest.raises(P4RtError, match=f"{owner[:-1]} '.*': .*the limit is {p4types.MOST_PARTS}") as refused:
        build_schema(info, model)
    assert refused.value.code == Code.INVALID_ARGUMENT


def test_the_types_of_a_pipeline_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """There can be many registers; each of them costs what its type has."""
    info = text_format.Parse((BUILD / "p4rt_all.p4info.txtpb").read_text(), p4i.P4Info())
    model = load_program((BUILD / "p4rt_all.json").read_bytes()).model
    parts = build_schema(info, model).types.parts
    assert parts >= len(info.registers) + len(info.digests)
    monkeypatch.setattr(p4types, "MOST_PARTS", parts)
    build_schema(info, model)
    monkeypatch.setattr(p4types, "MOST_PARTS", parts - 1)
    with pytest.raises(P4RtError, match=f"have at least {parts} parts; the limit is {parts - 1}"):
        build_schema(info, model)
