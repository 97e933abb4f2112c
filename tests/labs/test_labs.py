# SPDX-License-Identifier: Apache-2.0
"""Labs 1 to 5: what a student reads by following the sheet passes the check; every other answer fails with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.labs.lab import Sheet, load_labs
from tests.labs.student import SOLVED, Student

WRONG = {
    1: {"paths": "5", "pair": "1 1", "link": "spine1", "idle": "8", "slowdown": "99", "sport": "0", "gain": "0.01"},
    2: {"frame_us": "0.87", "late": "0", "reorders": "5ms", "orders": "5us", "flow": "99", "price": "-1"},
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
        "crossing": "9",
        "ratio": "7",
        "interval": "0.1",
        "differs": "maybe",
    },
    5: {
        "rtt_us": "1",
        "reorders": "5ms",
        "orders": "5us",
        "ratio": "0.1",
        "late": "0",
        "flow": "nine",
        "default_us": "20us",
    },
}


@pytest.fixture(scope="module", params=sorted(SOLVED))
def solved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Student, dict[str, object]]]:
    student = Student(request.param, tmp_path_factory.mktemp("student"))
    yield student, SOLVED[request.param](student)


def test_answers(solved: tuple[Student, dict[str, object]]) -> None:
    """Right answers pass, each with a reason; then each wrong answer fails for a reason that is not the solution."""
    student, answers = solved
    questions = Sheet(student.number).questions
    assert list(answers) == list(questions)
    status, verdicts = student.check(answers)
    assert {key: verdict for key, (verdict, why) in verdicts.items() if verdict != "right" or not why} == {}, verdicts
    assert (status, list(verdicts)) == (0, list(questions))
    status, verdicts = student.check(WRONG[student.number])
    assert status == 1
    assert [key for key, (verdict, _) in verdicts.items() if verdict != "wrong"] == []
    for key, (_, why) in verdicts.items():
        assert why
        assert str(answers[key]) not in why.split() or key in ("paths", "order"), (key, why)
