# SPDX-License-Identifier: Apache-2.0
"""docs/reference/api.md has the docstrings, docs/reference/results.schema.json the type of results.json, docs/learn/tour.ipynb what its cells give."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

import tailrace

ROOT = Path(__file__).resolve().parents[2]
TOUR = ROOT / "docs" / "learn" / "tour.ipynb"
MOST_BYTES = 150_000


def load() -> Any:
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "scripts" / "make_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_current() -> None:
    """Else: make docs."""
    text = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    assert text == load().api_page()
    headings = re.findall(r"^### tailrace\.(\w+)", text, re.MULTILINE)
    assert sorted(headings) == tailrace.__all__


def test_the_page_of_commands_is_current() -> None:
    """Else: make docs."""
    assert (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8") == load().commands_page()


def test_the_schema_of_results_is_current() -> None:
    """Else: make docs. It is a schema of its draft."""
    text = (ROOT / "docs" / "reference" / "results.schema.json").read_text("utf-8")
    assert text == load().results_schema()
    jsonschema.Draft202012Validator.check_schema(json.loads(text))


def outputs(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What cells show, but for the bytes of pictures, which depend on fonts and versions."""
    for cell in document["cells"]:
        for output in cell.get("outputs", []):
            yield {
                key: {kind: None if kind == "image/png" else text for kind, text in value.items()}
                if key == "data"
                else value
                for key, value in output.items()
            }


def test_the_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a kernel as Jupyter starts it, where an event loop runs. Else: make docs."""
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    stored = json.loads(TOUR.read_text("utf-8"))
    notebook = load().run_tour(TOUR)
    assert [cell["source"] for cell in notebook["cells"]] == [cell["source"] for cell in stored["cells"]]
    assert list(outputs(notebook)) == list(outputs(stored))
    assert sum("image/png" in output.get("data", {}) for output in outputs(notebook)) == 2


def test_nothing_of_a_machine_is_stored() -> None:
    text = TOUR.read_text("utf-8")
    assert len(text) < MOST_BYTES
    assert not re.search(r"(?<![\w.])/(?:home|root|tmp|usr|opt|var)/|Users", text)
    assert {frozenset(cell["metadata"]) for cell in json.loads(text)["cells"]} == {frozenset()}


@pytest.mark.parametrize("number", [0, 1])
def test_the_examples_of_the_page_run(number: int, tmp_path: Path) -> None:
    """In a process of their own, since they register a scheme; pandas may be missing here."""
    code = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "reference" / "api.md").read_text("utf-8"), re.DOTALL
    )[number]
    if importlib.util.find_spec("pandas") is None:
        code = "".join(
            line for line in code.splitlines(keepends=True) if not re.match(r"import pandas|frame", line)
        )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300
    )
    assert "mean FCT (µs)" in done.stdout
    assert "<Listing" not in done.stdout
    assert list(tmp_path.iterdir()) == []
