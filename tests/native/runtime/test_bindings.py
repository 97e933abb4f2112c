# SPDX-License-Identifier: Apache-2.0
"""What native.runtime.lib says of the C core, compared with its headers as the C compiler reads them."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tailrace.native.runtime import lib
from tailrace.toolchain.artifacts import RUNTIME
from tailrace.toolchain.cc import compiler, shared_library

STRUCTURES = [
    found
    for found in vars(lib).values()
    if isinstance(found, type) and issubclass(found, ctypes.Structure) and found is not ctypes.Structure
]
CONSTANTS = {
    **{f"TR_{name}": getattr(lib, name) for name in ("OK", "EEXIST", "ENOENT", "EFULL", "ERANGE", "EINVAL")},
    **{f"TR_{name}": getattr(lib, name) for name in ("ENOMEM", "MAX_PORTS", "MAX_PRIORITIES", "ALWAYS_PPM")},
    **{f"TR_{name}": getattr(lib, name) for name in ("NEVER", "PS_PER_NS", "DROP_COUNT")},
    **{f"TR_{name}": getattr(lib, name) for name in ("TARGET_ACTION", "TARGET_MEMBER", "TARGET_GROUP")},
}
NUMBERS = {
    "int": ctypes.c_int,
    "unsigned": ctypes.c_uint,
    "long": ctypes.c_long,
    "int32_t": ctypes.c_int32,
    "uint8_t": ctypes.c_uint8,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
}
BYTES = ("uint8_t", "char", "void")


def c_name(structure: type[ctypes.Structure]) -> str:
    """Its name in C is all that its docstring says."""
    assert structure.__doc__ is not None
    return structure.__doc__


def probe(tmp_path: Path) -> ctypes.CDLL:
    """Numbers that the compiler knows, as arrays."""
    layout = []
    for structure in STRUCTURES:
        name = c_name(structure)
        layout.append(f"sizeof({name})")
        for field, *_ in structure._fields_:
            layout += [f"offsetof({name}, {field})", f"sizeof((({name} *)0)->{field})"]
    source = tmp_path / "probe.c"
    source.write_text(
        '#include <stddef.h>\n#include "tr_switch.h"\n'
        f"const uint64_t layout[] = {{{', '.join(layout)}}};\n"
        f"const int64_t constants[] = {{{', '.join(f'(int64_t){name}' for name in CONSTANTS)}}};\n"
    )
    return ctypes.CDLL(str(shared_library("probe", [source])))


def test_structures_and_constants(tmp_path):
    """Sizes and places of all fields, and every number that stands in both."""
    expected = []
    for structure in STRUCTURES:
        expected.append(ctypes.sizeof(structure))
        for field, *_ in structure._fields_:
            place = getattr(structure, field)
            expected += [place.offset, place.size]
    found = probe(tmp_path)
    layout = (ctypes.c_uint64 * len(expected)).in_dll(found, "layout")
    assert expected == list(layout)
    constants = (ctypes.c_uint64 * len(CONSTANTS)).in_dll(found, "constants")
    assert [value % 2**64 for value in CONSTANTS.values()] == list(constants)
    assert len(STRUCTURES) > 10


def prototypes(text: str) -> dict[str, tuple[str, list[str]]]:
    """Result and parameters of every function that preprocessed C declares, parameters without their names."""
    found: dict[str, tuple[str, list[str]]] = {}
    for result, name, inner in re.findall(r"([\w\s*]+?)\b(tr_\w+)\s*\(([^{};]*?)\)\s*;", text):
        words = [" ".join(part.split()) for part in re.split(r",(?![^()]*\))", inner)]
        found[name] = (" ".join(result.split()), [] if words == ["void"] else [typed(word) for word in words])
    return found


def typed(parameter: str) -> str:
    """A parameter's type: an array is a pointer, a name counts for nothing."""
    parameter = re.sub(r"\[[^]]*\]$", "*", parameter)
    found = re.fullmatch(r"(.*?)(\w+)(\*?)", parameter)
    assert found is not None, parameter
    kind, _, stars = found.groups()
    return f"{kind}{stars}" if kind.strip() not in ("", "const") else parameter


def same(c_type: str, declared: object) -> bool:
    """Whether a ctypes type is what C means; an address of bytes may be anything that has one."""
    words = c_type.replace("const", "").replace("static", "").replace("extern", "").replace(" ", "")
    if words == "void":
        return declared is None
    if words in NUMBERS:
        return declared is NUMBERS[words]
    if words == "tr_log_fn":
        return declared is lib.LOG_FN
    assert words.endswith("*"), words
    target = words[:-1]
    if declared is ctypes.c_void_p:
        return target in {"tr_switch", "tr_program", "void", "tr_pkt"} | {c_name(one) for one in STRUCTURES}
    if declared is ctypes.c_char_p:
        return target in BYTES
    kinds: dict[str, Any] = {**NUMBERS, **{c_name(one): one for one in STRUCTURES}}
    return target in kinds and declared is ctypes.POINTER(kinds[target])


def declared_by_compiler() -> dict[str, tuple[str, list[str]]]:
    found: dict[str, tuple[str, list[str]]] = {}
    for header in ("tr_switch.h", "tr_mem.h"):
        words = [*compiler().words, "-E", "-P", str(RUNTIME / header)]
        found |= prototypes(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return found


def test_signatures():
    """Result, number and type of the parameters of every function that Python calls."""
    in_c = declared_by_compiler()
    for name, (result, parameters) in lib._SIGNATURES.items():
        c_result, c_parameters = in_c[name]
        assert same(c_result, result), name
        assert len(c_parameters) == len(parameters), name
        for c_type, declared in zip(c_parameters, parameters, strict=True):
            assert same(c_type, declared), (name, c_type, declared)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("uint64_t tr_run(tr_switch *s, uint64_t now_ps);", True),
        ("uint32_t tr_run(tr_switch *s, uint64_t now_ps);", False),
        ("uint64_t tr_run(tr_switch *s, uint32_t now_ps);", False),
        ("uint64_t tr_run(tr_switch *s, uint64_t *now_ps);", False),
        ("uint64_t tr_run(uint64_t now_ps, tr_switch *s);", False),
    ],
)
def test_another_signature_is_seen(text, good):
    """The comparison is not one of nothings."""
    result, parameters = lib._SIGNATURES["tr_run"]
    ((c_result, c_parameters),) = prototypes(text).values()
    kinds = [*zip([c_result, *c_parameters], [result, *parameters], strict=True)]
    assert good == all(same(c_type, declared) for c_type, declared in kinds)
