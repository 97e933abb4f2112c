# SPDX-License-Identifier: Apache-2.0
"""scripts/setup.sh with an interpreter and an apt-get that only write down what they are asked for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 120.0
# It makes environments whose interpreter is a copy of itself; FAIL is a word of what it is to fail at.
PYTHON = """#!/bin/sh
case "$*" in *"$FAIL"*) echo "ERROR: no such thing as $FAIL" >&2; exit 1 ;; esac
case "$*" in
    "-m venv"*) echo "$*" >>"$ASKED"; rm -rf "$4"; mkdir -p "$4/bin" "$4/lib/python3.10/site-packages"; cp "$0" "$4/bin/python" ;;
    "-m pip"* | "-m tailrace"*) echo "$*" >>"$ASKED" ;;
esac
"""
STEP = re.compile(r"setup: \[(\d)/(\d)\] (.*) … (\d+ s|failed)")


@dataclass(frozen=True)
class Folder:
    """A project with nothing but what the set-up reads."""

    path: Path

    def setup(self, *parts: str, fail: str = "nothing at all") -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{self.path / 'bin'}:{os.environ['PATH']}",
            "PYTHON": str(self.path / "bin" / "python"),
            "ASKED": str(self.path / "asked"),
            "FAIL": fail,
        }
        (self.path / "asked").write_text("")
        return subprocess.run(
            [self.path / "scripts" / "setup.sh", *parts],
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def asked(self) -> list[str]:
        return (self.path / "asked").read_text().splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    for name in ("scripts/setup.sh", "pyproject.toml", "requirements/ptf.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    programs: Mapping[str, str] = {
        "python": PYTHON,
        "apt-get": "#!/bin/sh\necho 'E: no network' >&2; exit 100\n",
    }
    for name, text in programs.items():
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    return Folder(tmp_path)


def steps(said: str) -> list[str]:
    """The titles of the steps about environments; which Debian packages are missing depends on the machine."""
    matches = STEP.findall(said)
    assert [int(number) for number, *_ in matches] == list(range(1, len(matches) + 1))
    assert len({of for _, of, *_ in matches}) == (1 if matches else 0)
    return [title for _, _, title, _ in matches if not title.startswith("Debian packages")]


def test_a_run_needs_less_than_the_tests(folder: Folder) -> None:
    """Each step is said with its time; tests add to what is there; what is there is not made again."""
    done = folder.setup("run")
    assert done.returncode == 0, done.stderr
    assert len(steps(done.stderr)) == 2
    venv, pip = folder.asked()
    assert venv == "-m venv --clear .venv"
    assert pip.endswith("--editable .[intervals]")
    more: dict[str, list[str]] = {"run": [], "test": ["--editable .[dev]", "tailrace.hosts.build"]}
    for part, expected in more.items():
        done = folder.setup(part)
        assert done.returncode == 0, done.stderr
        assert [
            asked for asked, end in zip(folder.asked(), expected, strict=True) if not asked.endswith(end)
        ] == []
        assert len(steps(done.stderr)) == len(expected)
    for parts in (("run",), ("test",), ("run", "test")):
        assert steps(folder.setup(*parts).stderr) == folder.asked() == []
    assert len(steps(folder.setup("ptf").stderr)) == 2


@pytest.mark.parametrize("name", ["pyproject.toml", "scripts/setup.sh"])
def test_a_change_makes_it_anew(folder: Folder, name: str) -> None:
    """The stamp holds all that the environment was made from."""
    folder.setup("run")
    with (folder.path / name).open("a") as file:
        file.write("# changed\n")
    folder.setup("run")
    assert len(folder.asked()) == 2


@pytest.mark.parametrize("fail", ["-m venv", "-m pip"])
def test_failure_is_one_line_with_the_log(folder: Folder, fail: str) -> None:
    """And the next run tries again what failed."""
    done = folder.setup("run", fail=fail)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last == f"setup: ERROR: no such thing as {fail} (all of it: build/setup.log)"
    assert "no such thing" in (folder.path / "build" / "setup.log").read_text()
    assert len(steps(done.stderr)) == (1 if fail == "-m venv" else 2)
    assert folder.setup("run").returncode == 0
    assert len(folder.asked()) == 2


def test_unknown_part(folder: Folder) -> None:
    done = folder.setup("everything")
    assert done.returncode == 1
    assert (
        done.stderr.splitlines()[-1]
        == "setup: unknown part 'everything'; expected packages, run, test, ptf, browser or fuzz"
    )
