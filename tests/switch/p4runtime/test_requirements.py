# SPDX-License-Identifier: Apache-2.0
"""requirements.toml names tests that exist, and the tables of docs/switch/p4runtime.md are made of it."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def load() -> Any:
    spec = importlib.util.spec_from_file_location("p4runtime_page", ROOT / "scripts" / "p4runtime_page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = load()
DATA = SCRIPT.load()
ROWS = [row for section in DATA["sections"] for row in section["rows"]]


def test_the_page_is_current() -> None:
    """Else: make docs."""
    assert SCRIPT.page(DATA) == SCRIPT.PAGE.read_text("utf-8")


def test_every_row_is_whole() -> None:
    """An id of its own, tests, and a reason for what is not held; 4ward's rows once each, and all of them."""
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert set(row) <= {
            "id",
            "says",
            "tests",
            "held",
            "why",
            "fourward",
            "differs",
            "compat",
            "strict",
        }, row["id"]
        assert row["says"] and row["tests"], row["id"]
        assert row.get("held", "yes") in SCRIPT.STATES and (row.get("held", "yes") == "yes") == (
            "why" not in row
        )
        assert "differs" not in row or row["fourward"], row["id"]
        if "compat" in row:
            assert row["compat"]["held"] in SCRIPT.STATES and row["compat"]["why"] and row["compat"]["tests"]
            assert row["compat"]["held"] != row.get("held", "yes"), row["id"]
    theirs = [requirement for row in ROWS for requirement in row.get("fourward", [])]
    assert sorted(theirs) == sorted(DATA["fourward"]["status"])


def test_every_test_is_there() -> None:
    """In the file that the row names."""
    functions: dict[str, set[str]] = {}
    for row in ROWS:
        for test in (*row["tests"], *row.get("compat", {}).get("tests", [])):
            file, _, name = test.partition("::")
            if file not in functions:
                body = ast.parse((HERE / file).read_text("utf-8")).body
                functions[file] = {node.name for node in body if isinstance(node, ast.FunctionDef)}
            assert name in functions[file], (row["id"], test)
