# SPDX-License-Identifier: Apache-2.0
"""The compiler's work grows as the program does: four times as much JSON is no more than about four times as much."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from tailrace.switch.compiler import CompilerError
from tailrace.switch.compiler.emit import emit
from tailrace.switch.compiler.emit.packing import Chunk, pack
from tailrace.switch.compiler.emit.text import CodeWriter
from tailrace.switch.compiler.read.bmv2_json import read_bmv2_json
from tailrace.switch.compiler.read.headers import MAX_HEADER_BYTES
from tailrace.switch.core.lib import C
from tests.switch.bmv2_builder import Builder, Json, assign, call, const, field, op

FEW = 60
MORE = 4
GROWTH = 4.2

STEP = assign(field("in", "a"), op("+", field("in", "a"), const(1)))


def plain(fields: int = 1) -> Json:
    b = Builder([("a", 16), ("sum", 16), *((f"f{i}", 4096) for i in range(fields))])
    b.run([STEP])
    return b.json()


def wide_header(n: int) -> Json:
    return plain(n // 2)


def checksum(n: int) -> Json:
    program = plain()
    inputs = [{"type": "field", "value": ["in", "a"]} for _ in range(20 * n)]
    program["calculations"] = [{"name": "c", "id": 0, "algo": "csum16", "input": inputs}]
    target = {"name": "s", "id": 0, "type": "generic", "target": ["in", "sum"], "calculation": "c"}
    program["checksums"] = [{**target, "update": True, "verify": False}]
    return program


def tables_of_a_large_action(n: int) -> Json:
    b = Builder([("a", 16)])
    action = b.action("x", [STEP] * n)
    for i in range(n):
        b.table(f"t{i}", [("exact", "in", "a")], "exact", [action])
    return b.json()


def unions(n: int) -> Json:
    program = plain()
    for i in range(n):
        header = {"name": f"h{i}", "id": 100 + i, "header_type": "out_t", "metadata": False}
        program["headers"].append(header)
        program["header_union_types"].append({"name": f"u{i}_t", "id": i, "headers": [["m", "out_t"]]})
        union = {"name": f"u{i}", "id": i, "union_type": f"u{i}_t", "header_ids": [100 + i]}
        program["header_unions"].append(union)
    return program


def work(program: Json, tracing: bool) -> int:
    """Lines of Python that are run for a program, those of a generator each time that it goes on."""
    made = json.dumps(program).encode()
    lines = 0

    def count(_frame: FrameType, _event: str, _value: Any) -> Any:
        nonlocal lines
        lines += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        emit(read_bmv2_json(made), tracing=tracing)
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("tracing", [False, True])
@pytest.mark.parametrize("shape", [wide_header, checksum, tables_of_a_large_action, unions])
def test_work_grows_as_the_program_does(shape: Callable[[int], Json], tracing: bool) -> None:
    assert work(shape(MORE * FEW), tracing) < GROWTH * work(shape(FEW), tracing)


def test_each_piece_is_looked_at_once() -> None:
    """However many words there are: a generator gives nothing twice."""

    def pieces() -> Iterator[Chunk]:
        yield "a", 4
        for _ in range(100):
            yield "b", 64
        yield "c", 9

    code = CodeWriter()
    assert (4 + 6400 + 9 + 7) // 8 == pack(code, "x", pieces())
    assert "tr_store_be(x + 0, 8, a << 60 | (b >> 4));" == code.lines[0]
    assert "tr_store_be(x + 8, 8, (b & 0xfULL) << 60 | (b >> 4));" == code.lines[1]
    assert "tr_store_be(x + 800, 2, (b & 0xfULL) << 12 | c << 3);" == code.lines[-1]


def test_a_header_that_no_frame_has_is_refused() -> None:
    assert C.TR_MAX_FRAME == MAX_HEADER_BYTES
    fields = MAX_HEADER_BYTES // 512
    assert f"f{fields - 2}" in emit(read_bmv2_json(json.dumps(plain(fields - 1)).encode()))
    with pytest.raises(CompilerError) as caught:
        read_bmv2_json(json.dumps(plain(fields + 1)).encode(), "x.json")
    size = 512 * (fields + 1) + 4
    assert f'x.json: headers["in"]: the header has {size} bytes, but a frame has 66000 at most' == str(
        caught.value
    )


def test_text_that_is_far_longer_than_its_program_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line for each element of a stack, as often as it is assigned."""
    monkeypatch.setattr("tailrace.switch.compiler.emit.text.MOST_BYTES", 8 << 20)
    program = plain()
    for stack in range(2):
        ids = range(1000 * (stack + 1), 1000 * (stack + 2))
        header = {"header_type": "out_t", "metadata": False}
        program["headers"] += [{"name": f"h{i}", "id": i, **header} for i in ids]
        made = {"name": f"s{stack}", "id": stack, "header_type": "out_t", "header_ids": list(ids)}
        program["header_stacks"].append(made)
    stacks = [{"type": "header_stack", "value": f"s{i}"} for i in range(2)]
    program["actions"][0]["primitives"] = [call("assign_header_stack", *stacks)] * 200
    with pytest.raises(CompilerError, match="the program's C text would have more than 8 MiB"):
        emit(read_bmv2_json(json.dumps(program).encode()))
