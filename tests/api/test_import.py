# SPDX-License-Identifier: Apache-2.0
"""`import tailrace` costs nothing, and what it offers is there and typed."""

from __future__ import annotations

import ast
import builtins
import subprocess
import sys
from pathlib import Path

import pytest
from mypy import api as mypy

import tailrace
import tailrace.api
from tailrace.experiments.plan.experiment import KEYS

ROOT = Path(__file__).resolve().parents[2]

NO_ERRORS = {
    "_TerminationSignal",  # SIGTERM
    "EndedError",  # the same
    "Interrupted",  # Ctrl-C
    "FailedError",  # the command line's own, which imports nothing
    "StreamEndedError",  # caught where it is raised
    "_ObservedError",  # likewise
    "_UnknownError",  # likewise
}


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh Python has loaded after some code, but those of the standard library."""
    print_modules = "\nimport sys; print(*(name for name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code + print_modules], capture_output=True, text=True, check=True
    )
    tops = {name.partition(".")[0] for name in done.stdout.split()}
    return {name for name in done.stdout.split() if name.startswith("tailrace")} | (
        tops - sys.stdlib_module_names
    )


def test_nothing_is_loaded_before_it_is_used() -> None:
    added = loaded_by("import tailrace; dir(tailrace)") - loaded_by("")
    assert added == {"tailrace"}


def test_errors_and_runs_load_nothing_that_draws() -> None:
    modules = loaded_by("import tailrace; tailrace.run; tailrace.Error")
    assert "tailrace.api.run" in modules
    assert not modules & {"matplotlib", "numpy", "polars", "pandas", "argcomplete", "tailrace.cli"}


def test_what_is_offered() -> None:
    """By the package, its list, and the room that gathers it."""
    assert sorted(tailrace.__all__) == tailrace.__all__ == tailrace.api.__all__
    for name in tailrace.__all__:
        assert getattr(tailrace, name) is getattr(tailrace.api, name)
        assert name in dir(tailrace)
    with pytest.raises(AttributeError, match="has no attribute 'rum'"):
        tailrace.rum  # type: ignore[attr-defined]  # noqa: B018


def test_keys_are_those_of_files() -> None:
    assert tuple(tailrace.Keys.__annotations__) == KEYS


def test_every_error_of_ours_has_one_base() -> None:
    """Whatever is an exception of Python's is Error, too."""
    theirs = {
        name
        for name, kind in vars(builtins).items()
        if isinstance(kind, type) and issubclass(kind, BaseException)
    }
    ours = {}
    for top in (ROOT / "tailrace", ROOT / "controller"):
        for path in top.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef):
                    bases = {getattr(base, "id", "") for base in node.bases}
                    if bases & theirs:
                        ours[node.name] = bases
    assert ours.pop("Error") == {"Exception"}
    assert {
        name for name, bases in ours.items() if "Error" not in bases and "HostError" not in bases
    } == NO_ERRORS
    assert issubclass(tailrace.SpecError, tailrace.Error)
    assert issubclass(tailrace.RunError, tailrace.Error)


SCRIPT = """
import tailrace

chosen = tailrace.experiment("basic", scheme="flowcut", seed=3)
reveal_type(tailrace.run(chosen))
result = tailrace.run(scheme="ecmp", topology="fat-tree:k=4", target="virtual")
reveal_type(result.flows)
if result.summary.fct_ns:
    reveal_type(result.summary.fct_ns.mean)
reveal_type(tailrace.figure(result))
reveal_type(tailrace.compare("basic", schemes=["ecmp", "flowcut"]).result(scheme="ecmp"))
reveal_type(tailrace.sweep(chosen, {"seed": range(3)}).runs[0].result)
try:
    tailrace.open_result("out")
except tailrace.Error as error:
    reveal_type(error)
tailrace.run(scheme=3)
tailrace.run(sceme="ecmp")
tailrace.rum()
"""

SEEN = (
    ("note", '"tailrace.results.result.Result"'),
    ("note", '"arro3.core.'),
    ("note", '"float"'),
    ("note", '"matplotlib.figure.Figure"'),
    ("note", '"tailrace.results.result.Result"'),
    ("note", '"tailrace.results.result.Result | None"'),
    ("note", '"tailrace.spec.errors.Error"'),
    ("error", 'Argument "scheme" to "run" has incompatible type "int"'),
    ("error", 'Unexpected keyword argument "sceme" for "run"'),
    ("error", 'Module has no attribute "rum"'),
)


def test_types_as_a_script_sees_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, "utf-8")
    out, err, _ = mypy.run(["--strict", "--no-error-summary", str(path)])
    assert err == ""
    lines = [line for line in out.splitlines() if "note: Revealed" in line or "error:" in line]
    assert len(lines) == len(SEEN), out
    for line, (kind, text) in zip(lines, SEEN, strict=True):
        assert f" {kind}: " in line
        assert text in line
