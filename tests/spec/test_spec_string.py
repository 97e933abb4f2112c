# SPDX-License-Identifier: Apache-2.0
"""name:key=value,key=value."""

from __future__ import annotations

import pytest

from tailrace.spec import Spec, SpecError, parse


def test_parse() -> None:
    """Name and options are split; blanks around them do not matter; the text can be had again."""
    words = parse(" leaf-spine: leaves=2, rate=10Gbps ", "topology")
    assert Spec("leaf-spine", {"leaves": "2", "rate": "10Gbps"}, "topology") == words
    assert str(words) == "leaf-spine:leaves=2,rate=10Gbps"
    assert words == parse(str(words), "topology")
    assert parse("ecmp") == Spec("ecmp", {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "topology: the name is missing in ''"),
        (":a=1", "topology: the name is missing in ':a=1'"),
        ("x:", "topology x: expected key=value after the colon"),
        ("x:a", "topology x: expected key=value, found 'a'"),
        ("x:a=", "topology x: expected key=value, found 'a='"),
        ("x:=1", "topology x: expected key=value, found '=1'"),
        ("x:a=1,,b=2", "topology x: expected key=value, found ''"),
        ("x:a=1,a=2", "topology x: key 'a' is given twice"),
    ],
)
def test_refuse(text: str, message: str) -> None:
    """Bad words are refused in one line that says what they are for."""
    with pytest.raises(SpecError) as caught:
        parse(text, "topology")
    assert message == str(caught.value)
