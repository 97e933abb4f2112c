# SPDX-License-Identifier: Apache-2.0
"""Compiled programs, as their two files say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.p4rt.errors import P4ProgramError
from tailrace.p4rt.programs import load, parse_p4info

TABLE = 'tables { preamble { id: 1 name: "in.t" alias: "t" } size: 4 }\n'
PROFILE = 'action_profiles { preamble { id: 2 name: "in.p" alias: "p" } size: 4 }\n'


def test_a_profile_that_no_table_has(tmp_path: Path) -> None:
    """As p4c writes them: it is in P4Info, and the rest can be read."""
    (tmp_path / "some.json").write_text("{}")
    (tmp_path / "some.p4info.txtpb").write_text(TABLE + PROFILE)
    program = load("some", tmp_path)
    assert len(program.p4info.action_profiles) == 1
    assert program.table("t").size == 4


def test_what_names_nothing_is_refused_in_a_line(tmp_path: Path) -> None:
    """The profile's table is not there."""
    (tmp_path / "some.json").write_text("{}")
    (tmp_path / "some.p4info.txtpb").write_text(PROFILE.replace("size: 4", "size: 4 table_ids: 9"))
    with pytest.raises(P4ProgramError, match=r"^program some: .*some\.p4info\.txtpb: .*9") as refused:
        load("some", tmp_path)
    assert "\n" not in str(refused.value)


def test_what_is_no_p4info_is_refused() -> None:
    """A byte order mark is none of it; a field that is not known may be a typing error."""
    assert parse_p4info(b"\xef\xbb\xbf" + TABLE.encode()).tables
    for data in (TABLE.encode() + b' later { name: "x" }', b"later { x: 1 }", TABLE.encode("utf-16"), b""):
        with pytest.raises(ValueError, match=r"^not P4Info: [^\n]+$"):
            parse_p4info(data)


@pytest.mark.parametrize("suffix", [".p4info.txtpb", ".p4.p4info.txtpb", ".p4info.txt", ".p4.p4info.txt"])
def test_p4info_beside_by_the_names_that_the_tutorials_give_it(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "some.json").write_text("{}")
    (tmp_path / f"some{suffix}").write_text(TABLE)
    assert load("some", tmp_path).p4info.tables
