# SPDX-License-Identifier: Apache-2.0
"""Each lab: what a student reads by following the sheet passes the check, and every other answer fails with a reason."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tailrace.cli.main import main
from tailrace.labs.lab import Lab, Sheet, load_labs
from tests.labs.student import ROOT, SOLVED, Student
from tests.long import long, more

WRONG = {
    1: {
        "paths": "5",
        "pair": "1 1",
        "link": "spine1",
        "idle": "8",
        "slowdown": "99",
        "sport": "0",
        "gain": "0.01",
    },
    2: {"frame_us": "0.87", "late": "0", "reorders": "5ms", "orders": "5us", "price": "-1"},
    3: {
        "flow": "9",
        "at_us": "1",
        "lasts_us": "x",
        "before": "leaf1",
        "after": "spine9",
        "longest": "h1-leaf1",
        "drains": "10000",
        "order": "1",
    },
    4: {
        "ordered": "letflow",
        "cost": "0.5",
        "worst": "9",
        "spine": "spine9",
        "low": "7",
        "high": "-1",
        "differs": "maybe",
    },
    5: {
        "rtt_us": "1",
        "reorders": "5ms",
        "orders": "5us",
        "ratio": "0.1",
        "late": "0",
    },
    6: {
        "scheme": "ecmp",
        "changes": "0",
        "gain": "0.5",
        "late": "1000000",
        "p4_scheme": "mine",
        "p4_uplinks": "1",
        "p4_late": "-1",
    },
}
LABS = [1, *(pytest.param(number, marks=long) for number in (2, 4, 5)), 3, 6]


@pytest.mark.parametrize("name", ["Ada", *more("Grace")])
@pytest.mark.parametrize("number", LABS)
def test_answers(tmp_path: Path, number: int, name: str) -> None:
    """Right answers pass; then each wrong answer fails, with a reason that does not say the solution."""
    student = Student(number, tmp_path, name)
    answers = SOLVED[number](student)
    keys = list(Sheet(number).questions)
    assert list(answers) == keys == list(WRONG[number])
    status, verdicts = student.check(answers)
    assert {
        key: verdict for key, verdict in verdicts.items() if verdict[0] != "right" or not verdict[1]
    } == {}
    assert (status, list(verdicts)) == (0, keys)
    status, verdicts = student.check(WRONG[number])
    assert (status, {verdict for verdict, _ in verdicts.values()}) == (1, {"wrong"})
    for key, (_, why) in verdicts.items():
        assert len(why) > 10
        solution = str(answers[key])
        assert not re.search(r"\d.", solution) or solution not in why.split(), (key, why)


def test_one_wrong_answer(tmp_path: Path) -> None:
    """The others stay right, unless they depend on it."""
    student = Student(1, tmp_path)
    answers = SOLVED[1](student)
    for key, dependent in {
        "idle": set(),
        "sport": {"gain"},
        "pair": {"link", "slowdown", "sport", "gain"},
    }.items():
        status, verdicts = student.check(answers | {key: WRONG[1][key]})
        assert status == 1
        assert {each for each in verdicts if verdicts[each][0] == "wrong"} == {key} | dependent
        assert all(verdicts[each][1].startswith("this depends on the answer to ") for each in dependent)


@pytest.mark.parametrize("number", sorted(SOLVED))
def test_sheets(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Each question has a blank, a hint and a measurement; sheets have a check and at most 800 words."""
    (path,) = (ROOT / "docs" / "labs").glob(f"{number}-*.md")
    text, sheet, made = path.read_text("utf-8"), Sheet(number), load_labs()[number]
    assert len(text.split()) <= 800
    assert 5 <= len(sheet.questions) <= 8
    assert text.count("\n1. ") == 1
    assert len(re.findall(r"^\d+\. ", text, re.MULTILINE)) == len(sheet.questions)
    for key, (question, hint) in sheet.questions.items():
        assert question.endswith("____")
        assert hint
        assert key in made.values or (hasattr(made, key) and not hasattr(Lab, key))
    assert f"tailrace lab {number} --check answers.toml" in text
    assert main(["lab", str(number)]) == 0
    shown = capsys.readouterr().out
    assert f"tailrace lab {number} --start lab{number}" in shown
    assert all(f". {key}: " in shown for key in sheet.questions)


def commands(number: int) -> list[str]:
    """Every command of a sheet but the start, the check and what needs two terminals (see longest_queue)."""
    (path,) = (ROOT / "docs" / "labs").glob(f"{number}-*.md")
    text = path.read_text("utf-8")
    blocks = re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    lines = [line for language, block in blocks if not language for line in block.splitlines()]
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    lines += [" ".join(code.split()) for code in re.findall(r"`((?:tailrace|python) [^`]+)`", prose)]
    return [
        line for line in lines if line and not re.search("^cd |tailrace lab |--stop-at|tailrace queues", line)
    ]


@pytest.mark.parametrize("number", [1, *(pytest.param(number, marks=long) for number in range(2, 7))])
def test_commands(tmp_path: Path, number: int) -> None:
    student = Student(number, tmp_path)
    (seed,) = re.findall(r'^seed += "?(\d+)', (student.folder / "lab.toml").read_text("utf-8"), re.MULTILINE)
    if number == 6:
        SOLVED[6](student)
    lines = [line for line in commands(number) if "compile_p4" not in line]
    assert len(lines) > 2
    for line in lines:
        line = line.replace("FLOW", "1").replace("--psn N", "--psn 10").replace("seed=120", f"seed={seed}")
        status, out = student.command(line)
        assert (status, bool(out)) == (0, True), line


def test_look_without_a_run(tmp_path: Path) -> None:
    """One line, no traceback."""
    student = Student(1, tmp_path)
    for line, expected in (
        ("python look.py", "usage: "),
        ("python look.py nowhere", "look.py: nowhere/summary.json: "),
    ):
        with pytest.raises(SystemExit) as error:
            student.command(line)
        assert str(error.value).startswith(expected)


@pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="needs p4c")
@long
def test_the_p4_program_compiles(tmp_path: Path) -> None:
    import subprocess
    import sys

    folder = Student(6, tmp_path).folder / "p4"
    subprocess.run(
        [sys.executable, "scripts/compile_p4.py", "-I", "p4src", folder, folder / "build"],
        cwd=ROOT,
        check=True,
    )
    assert (folder / "build" / "mine.json").exists()
