# SPDX-License-Identifier: Apache-2.0
"""Names and texts of a program are data in its C text, whatever bytes they are made of."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from string import punctuation, whitespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.switch.compiler import CompilerError, load_program
from tailrace.switch.compiler.emit import emit
from tailrace.switch.compiler.emit.text import STRING_BYTES, CodeWriter, identifier, string
from tailrace.switch.compiler.read.bmv2_json import read_bmv2_json
from tailrace.switch.core import V1ModelSwitch
from tests.long import ALL, more, some, times
from tests.switch.bmv2_builder import Builder, assign, call, const, field

ROOT = Path(__file__).parents[3]
BUILD = ROOT / "tests" / "programs" / "build"
TESTED = sorted(BUILD.glob("*.json"))
SCHEMES = sorted((ROOT / "p4src" / "build").glob("*.json"))

# ---- a program in which every name is another ----

# Keys whose texts are words of the format: types, operators, algorithms, numbers.
WORDS = {"op", "algo", "match_type", "type", "meter_unit", "version", "compiler"}
# Names with a meaning of their own in v1model.
KNOWN = {"ingress", "egress", "parser", "deparser", "standard_metadata", "start"}
KNOWN |= {"__HIT__", "__MISS__", "last", "$valid$", "packets", "bytes"}
_HEX = re.compile(r"-?0x[0-9a-fA-F]+|\*|[0-9.]*")
_TYPED_VALUES = {"hexstr", "bool", "expression", "local", "runtime_data", "lookahead", "payload"}


def standard_names(program: dict[str, Any]) -> set[str]:
    """What the runtime knows of standard_metadata, and the names of core.p4's errors."""
    names = set(KNOWN)
    for kind in program["header_types"]:
        if kind["name"].startswith("standard_metadata"):
            names |= {kind["name"], *(f[0] for f in kind["fields"])}
    for name, _ in program.get("errors", ()):
        names.add(name)
    for alias, target in program.get("field_aliases", ()):
        names |= {alias, *target}
    return names


def renamed(value: Any, name_of: Callable[[str], str], known: set[str], key: str = "") -> Any:
    """A JSON value in which every text that names or says something is replaced, the same one alike."""
    if isinstance(value, dict):
        out = {}
        for k, v in value.items():
            if (k in WORDS and isinstance(v, str)) or (
                k == "value" and value.get("type") in _TYPED_VALUES and isinstance(v, str)
            ):
                out[k] = v
            elif key == "next_tables":
                out[k if k in known else name_of(k)] = renamed(v, name_of, known, k)
            else:
                out[k] = renamed(v, name_of, known, k)
        return out
    if isinstance(value, list):
        return [renamed(v, name_of, known, key) for v in value]
    if isinstance(value, str) and value not in known and not _HEX.fullmatch(value):
        return name_of(value)
    return value


def attacked(program: dict[str, Any], attack: str, *, first: bool = False) -> dict[str, Any]:
    """The program with `attack` in every name; the names stay different from each other."""
    numbers: dict[str, int] = {}

    def name_of(name: str) -> str:
        number = numbers.setdefault(name, len(numbers))
        return f"{number}{attack}" if first else f"{attack}{number}"

    changed = renamed(program, name_of, standard_names(program))
    assert numbers, "nothing was renamed"
    assert isinstance(changed, dict)
    return changed


# ---- C as a compiler's first phases see it ----

_TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/)
      | (?P<directive>^[ ]*\#[^\n]*$)
      | (?P<string>"(?:[^"\\\n]|\\(?:[0-7]{3}|["\\?]))*")
      | (?P<number>[0-9][0-9a-zA-Z.]*)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<operator>[][(){}<>=+*/%&|^~!?:;,.-])
      | (?P<space>[ \n]+)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
INCLUDES = ["tr_core.h", "tr_hash.h", "tr_wide.h", "tr_v1model.h"]


def tokens(text: str) -> list[tuple[str, str]]:
    """Kind and text of every token; anything that is none fails. Trigraphs and spliced lines are none."""
    assert text.isascii()
    assert "\\\n" not in text and "??" not in text
    pairs, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None, text[at : at + 60]
        pairs.append((match.lastgroup or "", match.group()))
        at = match.end()
    return [token for token in pairs if token[0] != "space"]


def shape(c_tokens: list[tuple[str, str]]) -> list[str]:
    """What is left of a C text's tokens when names and literals are left out."""
    out = []
    for kind, part in c_tokens:
        if kind == "word" and (
            tail := re.match(r"(action_\d+|node_\d+|state_\d+|h\d+|ht\d+|f\d+|s\d+|us\d+|u\d+|ut\d+)_", part)
        ):
            out.append(tail.group())
        elif kind in ("string", "comment"):
            out.append(kind)
        else:
            out.append(part)
    return out


@functools.cache
def shape_of(path: Path) -> list[str]:
    """The shape of a program as it was."""
    return shape(tokens(emit(read_bmv2_json(path.read_bytes()))))


def check(path: Path, attack: str, *, first: bool = False) -> None:
    """The C text of an attacked program has the tokens of the program as it was."""
    after = tokens(emit(read_bmv2_json(json.dumps(attacked(load(path), attack, first=first)).encode())))
    assert shape_of(path) == shape(after)
    directives = [part for kind, part in after if kind == "directive"]
    assert [f'#include "{name}"' for name in INCLUDES] == directives
    for kind, part in after:
        assert kind != "comment" or re.fullmatch(r"/\* [A-Za-z0-9_ .']* \*/", part), part


def load(path: Path) -> dict[str, Any]:
    program = json.loads(path.read_text())
    assert isinstance(program, dict)
    return program


ATTACKS = [
    "*/ int evil(void); /*",
    "*/\n#include \"/etc/hostname\"\n/*",
    "/*",
    "//",
    "\\\n",
    "\\",
    "??/\n",
    "%:include <stdio.h>",
    "\"; int evil; \"",
    "\n#define int float\n",
    "\r\n#error evil",
    "%s%n%99999999d",
    "{}{}{:99999999}}{",
    "\0hidden",
    "\u2028\u2029\x85\x9b31m",
    "\x1b]0;evil\x07",
    "é漢字🙂",
    "\\u0022; evil",
    "int", "while", "NULL", "tr_switch", "next", "done", "end",
    "x" * 3_000,
    " ",
]  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: ascii(a)[:24])
@pytest.mark.parametrize("name", ["truncate_log_random", "header_unions", "header_stacks", *more("p4rt_all")])
def test_an_attack_in_every_name_changes_no_token(name: str, attack: str) -> None:
    program = BUILD / f"{name}.json"
    check(program, attack)
    check(program, attack, first=True)


@pytest.mark.parametrize("path", [*TESTED, *some(SCHEMES, 4)], ids=lambda p: p.stem)
def test_every_byte_in_every_name_changes_no_token(path: Path) -> None:
    """All 256 at once and in an order in which each follows another; every program that we have."""
    everything = "".join(map(chr, range(256)))
    check(path, everything, first=path in SCHEMES)
    if path in TESTED:
        check(path, "".join(reversed(everything)), first=True)


@pytest.mark.parametrize("byte", [b for b in range(256) if ALL or chr(b) in punctuation + whitespace])
def test_each_byte_alone(byte: int) -> None:
    program = BUILD / "truncate_log_random.json"
    check(program, chr(byte))
    check(program, f"?{chr(byte)}/")


@settings(max_examples=times(60, 3), suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=60))
def test_any_text_changes_no_token(attack: str) -> None:
    check(BUILD / "registers.json", attack)


@pytest.mark.parametrize("name", ["p4rt_all", "header_unions", "header_stacks", "truncate_log_random"])
def test_attacked_programs_compile_and_nothing_of_them_runs(name: str, tmp_path: Path) -> None:
    """A constructor in each name: it would leave a file behind when the object is loaded."""
    trace = tmp_path / "evil"
    attack = f'*/ __attribute__((constructor)) static void e(void) {{ fopen("{trace}", "w"); }} /*\n"\\'
    for first in (False, *more(True)):
        changed = attacked(load(BUILD / f"{name}.json"), attack, first=first)
        V1ModelSwitch(load_program(json.dumps(changed).encode(), cache_dir=tmp_path / "cache")).close()
    assert not trace.exists()


# ---- names that meet in C ----


class _Names(dict[str, str]):
    """New names of some things; others keep theirs."""

    def __call__(self, name: str) -> str:
        return self.get(name, name)


def test_stacks_and_unions_named_like_our_own_words_compile(tmp_path: Path) -> None:
    """A stack called "next" met its own counter; types that differ in a dot only met each other."""
    for path in ("header_stacks", "header_unions"):
        program = load(BUILD / f"{path}.json")
        for names in (["next", "next.", "next "], ["a.b", "a_b", "a-b"]):
            left = iter(names * 50)
            seen: dict[str, str] = {}
            kinds = ("header_stacks", "header_unions", "header_union_types", "header_union_stacks")
            for kind in kinds:
                for number, thing in enumerate(program.get(kind, ())):
                    seen.setdefault(thing["name"], f"{next(left)}{number // len(names) or ''}")
            text = json.dumps(renamed(program, _Names(seen), set()))
            V1ModelSwitch(load_program(text.encode(), cache_dir=tmp_path)).close()


def test_two_nodes_of_one_name_are_refused_in_a_line() -> None:
    b = Builder([("a", 8)])
    b.run([], "x")
    b.run([], "y")
    b.tables[1]["name"] = b.tables[0]["name"]
    program = b.json()
    program["pipelines"][0]["tables"][0]["next_tables"] = {"x": None}
    with pytest.raises(CompilerError, match="two control nodes are named"):
        emit(read_bmv2_json(json.dumps(program).encode()))


# ---- the two ways in, and the guard behind them ----


@given(st.text())
def test_an_identifier_is_a_bounded_tail_of_one(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_]{0,40}", identifier(name))


@given(st.text() | st.text(st.characters(categories=["Cs", "Cc"])))
def test_a_string_is_one_printable_literal(text: str) -> None:
    literal = string(text)
    assert [("string", literal)] == tokens(literal)


def test_what_is_printable_and_short_is_said_as_it_is() -> None:
    """As C reads it; `{}` and `%` mean nothing to a literal."""
    for text in ("plain", "100 % {} {x}", 'say "hi" \\ ?', "über"):
        body = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), string(text)[1:-1])
        said = re.sub(r'\\(["\\?])', r"\1", body)
        assert text == said.encode("latin-1").decode()


def test_a_long_text_is_cut() -> None:
    assert len(string("x" * 10_000_000)) <= STRING_BYTES + 2
    assert len(string("\x01" * 10_000_000)) <= 2 * STRING_BYTES
    assert len(string("é" * 10_000_000)) <= 4 * STRING_BYTES + 2


@pytest.mark.parametrize(
    "line",
    ["a\nb", "#x", "/* x */", "x // y", 'a "b', "a\\", "é", "\0", "??=", '"\\x41"', '"\n"', "%:x", "'c'"],
)
def test_a_line_that_is_not_plain_c_is_refused(line: str) -> None:
    """Should somebody write a name into a line one day."""
    with pytest.raises(CompilerError, match="cannot be translated"):
        CodeWriter().line(line)


# ---- what the log says ----


def said_by(text: str, name: str = "tbl") -> list[str]:
    b = Builder([("a", 8)])
    logged = {
        "op": "log_msg",
        "parameters": [{"type": "string", "value": text}, {"type": "parameters_vector", "value": []}],
    }
    failed = call("assert", {"type": "expression", "value": {"type": "bool", "value": False}})
    failed["source_info"] = {"filename": text, "line": 3, "column": 1, "source_fragment": text}
    b.run([logged, assign(field("in", "a"), const(1)), failed], name)
    lines: list[str] = []
    with V1ModelSwitch(load_program(b.text())) as switch:
        switch.set_log(lambda level, line: lines.append(line))
        switch.inject(0, bytes(64), at_ns=0)
        switch.run(1000)
        switch.set_log(None)
    return lines


@pytest.mark.parametrize(
    "text", ["%s%n%d", "{}{}", "a\nb", "\x1b[31mred", "\0", "\x7f\x9b", "é" * 5000, "\u2028"]
)
def test_logged_texts_are_data_and_forge_no_line(text: str) -> None:
    lines = said_by(text, text)
    assert lines
    assert any("assert failed" in line for line in lines)
    assert all(line.isprintable() or "\ufffd" in line for line in lines)
    assert all(len(line.encode()) <= 1100 for line in lines)
    if text in ("%s%n%d", "{}{}"):
        assert text in lines
