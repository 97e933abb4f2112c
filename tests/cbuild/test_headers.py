# SPDX-License-Identifier: Apache-2.0
"""Python follows the headers: nothing of them is written down a second time."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from cffi import CDefError

from tailrace.cbuild import headers
from tailrace.cbuild.cc import library_recipe

HEADER = """/* What is asked. */
#ifndef ASKED_H
#define ASKED_H
#include <stdint.h>
#define ASKED_MOST 3u   /* {comment} */
enum {{ ASKED_BAD = -7, ASKED_NEXT }};
typedef struct asked {{
{fields}
}} asked;
{result} asked_sum(const asked *a);
#endif
"""
SOURCE = '#include "asked.h"\n{result} asked_sum(const asked *a)\n{{\n    return {sum};\n}}\n'


@pytest.mark.parametrize(
    ("fields", "result", "total", "values", "expected"),
    [
        ("    uint32_t few;\n    uint64_t many;", "uint64_t", "a->few + a->many", (1, 2**40), 2**40 + 1),
        ("    uint64_t many;\n    uint8_t few;", "uint64_t", "a->few + a->many", (2**40, 1), 2**40 + 1),
        (
            "    uint16_t of[ASKED_MOST];\n    int32_t few;",
            "int32_t",
            "a->few - a->of[2]",
            ([1, 2, 3], -5),
            -8,
        ),
    ],
)
def test_a_changed_header_is_followed(tmp_path: Path, fields, result, total, values, expected) -> None:
    """Other places and widths, other results: what C reads is what was given by the header's names."""
    header, source = tmp_path / "asked.h", tmp_path / "asked.c"
    header.write_text(HEADER.format(fields=fields, result=result, comment='not "a" string'))
    source.write_text(SOURCE.format(result=result, sum=total))
    ffi = headers.declared([header])
    library = headers.bound(ctypes.CDLL(str(library_recipe("asked", [source], [tmp_path]).path())), ffi)
    given = ffi.new("asked *", values)
    assert expected == library.asked_sum(given) == library.asked_sum([values])
    assert (3, -7, -6) == (library.ASKED_MOST, library.ASKED_BAD, headers.numbers(ffi).ASKED_NEXT)
    names = [line.split()[1].partition("[")[0].rstrip(";") for line in fields.splitlines()]
    assert names == list(headers.fields(ffi, given))


def test_one_header_goes_on_from_another(tmp_path: Path) -> None:
    """Types of the first are the same types in the second, not others of that name."""
    first, second = tmp_path / "first.h", tmp_path / "second.h"
    first.write_text("#define FIRST 5u\ntypedef struct thing thing;\n")
    second.write_text('#include "first.h"\ntypedef struct pair { uint8_t of[FIRST]; thing *who; } pair;\n')
    ffi = headers.declared([first])
    beside = headers.declared([second], ffi)
    assert ffi.typeof("thing *") is beside.typeof("thing *")
    assert 16 == beside.sizeof("pair")


@pytest.mark.parametrize(
    "text",
    [
        "#define TWO (1 + 1)\n",
        "static inline int two(void) { return 2; }\n",
        "int two(void\n",
        "#error not here\n",
    ],
)
def test_what_python_cannot_read_is_not_passed_over(tmp_path: Path, text: str) -> None:
    header = tmp_path / "odd.h"
    header.write_text(text)
    with pytest.raises(CDefError):
        headers.declared([header])
