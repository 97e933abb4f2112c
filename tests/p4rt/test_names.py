# SPDX-License-Identifier: Apache-2.0
"""Names of P4Info: whatever P4Info can hold is found by its full name."""

from __future__ import annotations

import pytest
from finsy.proto import p4i

from tailrace.p4rt.by_name.names import NameIndex, entities, members
from tailrace.spec import SpecError


def named(*pairs: tuple[str, str]) -> NameIndex[p4i.Table]:
    """Tables of full names and aliases, with ids from 1 on."""
    return entities(
        "table",
        [
            p4i.Table(preamble=p4i.Preamble(id=number, name=name, alias=alias))
            for number, (name, alias) in enumerate(pairs, 1)
        ],
    )


def fields(*names: str) -> NameIndex[p4i.MatchField]:
    return members("match field", [p4i.MatchField(id=at, name=name) for at, name in enumerate(names, 1)])


def test_full_names_aliases_and_ends() -> None:
    names = named(("ingress.a.acl", "a.acl"), ("ingress.b.acl", "b.acl"), ("ingress.route", "route"))
    for text, number in (
        ("ingress.a.acl", 1),
        ("a.acl", 1),
        ("b.acl", 2),
        ("route", 3),
        ("ingress.route", 3),
    ):
        assert names.id_of(text) == number
    with pytest.raises(
        SpecError, match=r"^table 'acl' matches 2: ingress.a.acl, ingress.b.acl; give the full name$"
    ):
        names.id_of("acl")
    with pytest.raises(SpecError, match=r"^no table named 'rout'; did you mean route\?$"):
        names.id_of("rout")
    with pytest.raises(SpecError, match="no table named ''"):
        names.id_of("")


def test_an_alias_of_two_means_none_of_them() -> None:
    names = named(("in.t", "t"), ("out.t", "t"))
    assert [names.id_of("in.t"), names.id_of("out.t")] == [1, 2]
    assert [names.shown(1), names.shown(2)] == ["in.t", "out.t"]
    with pytest.raises(SpecError, match="matches 2"):
        names.id_of("t")


def test_a_full_name_wins_over_an_alias() -> None:
    """`t` is the whole name of one table, and the alias of another one."""
    names = named(("t", "t"), ("x.t", "t"))
    assert [names.id_of("t"), names.id_of("x.t")] == [1, 2]
    assert [names.shown(1), names.shown(2)] == ["t", "x.t"]


def test_objects_without_alias() -> None:
    names = named(("a.t", ""), ("b.u", ""))
    assert [names.id_of("t"), names.id_of("b.u")] == [1, 2]
    assert names.shown(1) == "a.t"


def test_fields_with_one_last_name() -> None:
    names = fields("hdr.eth.src", "hdr.ip.src", "hdr.ip.dst")
    for text, number in (("hdr.eth.src", 1), ("eth.src", 1), ("hdr.ip.src", 2), ("dst", 3)):
        assert names.id_of(text) == number
    assert [names.shown(number) for number in (1, 2, 3)] == ["hdr.eth.src", "hdr.ip.src", "dst"]
    with pytest.raises(SpecError, match=r"'src' matches 2: hdr\.eth\.src, hdr\.ip\.src"):
        names.id_of("src")


def test_names_with_brackets_and_validity() -> None:
    names = fields(
        "hdr.srcRoutes[0].port", "hdr.srcRoutes[1].port", "hdr.ip.$valid$", "hdr.eth.isValid()", ""
    )
    for text, number in (
        ("hdr.srcRoutes[0].port", 1),
        ("srcRoutes[1].port", 2),
        ("hdr.ip.$valid$", 3),
        ("hdr.ip.isValid()", 3),
        ("ip.isValid()", 3),
        ("hdr.eth.$valid$", 4),
        ("5", 5),
    ):
        assert names.id_of(text) == number
    with pytest.raises(SpecError, match="matches 2"):
        names.id_of("port")


def test_a_name_of_many_dots_is_no_work() -> None:
    """Ends of names are compared, not made in advance: a name of a million parts costs no more than its text."""
    names = named(("." * 1_000_000, "x"), ("a.t", "t"))
    assert names.id_of("t") == 2
