# SPDX-License-Identifier: Apache-2.0
"""What all labs share: the sheet of a lab, and the measurement of its expected answers.

docs/labs/N-NAME.md is the sheet. Its files are code blocks with title="NAME", in which SEED becomes the
student's seed; its first block below `## Start` has commands; a question begins with `1. ` and its key in
backquotes, and its hint is in <details>. A question may have more hints, which the check does not show. A lab
is a class with the answer to each question: a function in `values`, or a method with the question's key as
name, which judges an answer by itself. A subclass with a number is registered.
"""

from __future__ import annotations

import re
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import tailrace
from tailrace.experiments.plan.plan import plan
from tailrace.labs.answers import compare, first_seed, read_answers, require
from tailrace.results.atomic_folder import atomic_folder
from tailrace.sim.job import Job
from tailrace.spec.atomic import write_file
from tailrace.spec.errors import Error, FileError, SpecError
from tailrace.spec.registry import load_folder
from tailrace.spec.text import json_text
from tailrace.tables.arrow import rows_of

FILE = "answers.toml"
EXPERIMENT = "lab.toml"
_SHEETS = Path(__file__).with_name("sheets")
_TRIES = 30
"""The number of consecutive seeds of which the first that suits a lab is taken."""

_COMMANDS = re.compile(r"^## Start\n.*?^```\n(.*?)^```", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r'^```\w+ title="([\w./-]+)"\n(.*?)^```', re.DOTALL | re.MULTILINE)
_QUESTION = re.compile(
    r"^\d+\. `(\w+)` (.*?)<details><summary>Hint</summary>(.*?)</details>", re.DOTALL | re.MULTILINE
)

LABS: dict[int, type[Lab]] = {}
"""The labs by number, when `load_labs` has imported them."""

Verdict = tuple[bool | None, str]
"""Whether an answer is right, None without an answer, and why."""


class Checked(NamedTuple):
    """An answer file's name and seed, the verdicts, and how many answers are right, of so many that count."""

    name: str
    seed: int
    verdicts: dict[str, Verdict]
    right: int
    counted: int


Values = Mapping[str, Callable[[Any], Any]]
"""The functions that measure the answers to questions, by key."""


class Sheet:
    """The sheet of a lab: title, commands to begin with, questions and their hints by key, files by path."""

    def __init__(self, number: int) -> None:
        text = next(_SHEETS.glob(f"{number}-*.md")).read_text("utf-8")
        self.title = text.partition("\n")[0].removeprefix("# ")
        self.commands = _COMMANDS.findall(text)[0]
        self.questions = {
            key: (" ".join(question.split()), " ".join(hint.split()))
            for key, question, hint in _QUESTION.findall(text)
        }
        self.files: dict[str, str] = dict(
            _CODE.findall((_SHEETS / "index.md").read_text("utf-8")) + _CODE.findall(text)
        )


class Lab:
    """A lab with a student's seed and answers.

    folder: where the experiment's files are; home: the folder of the answer file, and of the student's code
    """

    number: ClassVar[int]
    values: ClassVar[Values]

    def __init_subclass__(cls) -> None:
        if "number" in vars(cls):
            LABS[cls.number] = cls

    def __init__(self, folder: Path, seed: int, answers: Mapping[str, str], home: Path) -> None:
        self.folder, self.seed, self.answers, self.home = folder, seed, answers, home
        self.sheet = Sheet(self.number)
        self._results: dict[str, tailrace.Result] = {}

    def write(self) -> None:
        """Writes the files with which a student begins, except for the answers."""
        for name, text in self.sheet.files.items():
            (self.folder / name).parent.mkdir(exist_ok=True)
            write_file(self.folder / name, text.replace("SEED", str(self.seed)))

    def problem(self) -> str:
        """Why there is nothing to see with this seed; empty if there is."""
        return ""

    def lacking(self) -> Mapping[str, str]:
        """The program that each open question needs and this machine lacks; it does not count then."""
        return {}

    def verdict(self, key: str) -> Verdict:
        """The verdict on an answer."""
        if not (answer := self.answers.get(key, "")):
            program = self.lacking().get(key)
            return None, f"does not count: this machine has no {program}" if program else "no answer yet"
        try:
            if (value := self.values.get(key)) is None:
                return True, getattr(self, key)(answer)
            measured = value(self)
            unit = "us" if key.endswith("_us") else "x" if isinstance(measured, float) else ""
            return True, compare(answer, measured, unit, self.sheet.questions[key][1])
        except Error as error:
            return False, str(error)

    def earlier(self, key: str) -> str:
        """The answer to an earlier question. Raises WrongError unless it is right."""
        require(self.verdict(key)[0] is True, f"this depends on the answer to {key}")
        return self.answers[key]

    def experiment(self, **keys: Any) -> tailrace.Experiment:
        """The lab's experiment with these keys changed."""
        return tailrace.experiment(self.folder / EXPERIMENT, **keys)

    @cached_property
    def job(self) -> Job:
        """The experiment with all its defaults."""
        return plan(self.experiment().each_seed()[0], "virtual").job

    def run(self, **keys: Any) -> tailrace.Result:
        """The run of the experiment with these keys changed; each is run once."""
        name = repr(sorted(keys.items()))
        if name not in self._results:
            self._results[name] = tailrace.run(self.experiment(**keys))
        return self._results[name]

    def uplinks(self, result: tailrace.Result) -> dict[int, list[str]]:
        """The uplinks, such as leaf1-spine2, of each flow in the order of first use; needs a record."""
        leaves = {row.id: self.job.topology.host(row.src).switch for row in result.rows}
        used: dict[int, list[str]] = {flow: [] for flow in leaves}
        columns = ("what", "frame", "node", "flow")
        for what, frame, node, flow in rows_of(result.timelines.record, columns):
            link = f"{leaves.get(flow)}-{node}"
            if (what, frame) == ("arrived", "data") and node.startswith("spine") and link not in used[flow]:
                used[flow].append(link)
        return used


def load_labs() -> dict[int, type[Lab]]:
    """All labs, by number."""
    load_folder(__package__)
    return dict(sorted(LABS.items()))


def reordered(result: tailrace.Result) -> int:
    """The number of packets out of order."""
    return sum(row.out_of_order for row in result.rows)


def start(made: type[Lab], folder: Path, name: str) -> int:
    """Writes the files of a lab and an answer file, and returns the name's seed (`_of_name`).

    Raises:
        SpecError: the name is none, or the folder has answers or cannot be written.
    """
    if (folder / FILE).exists():
        raise FileError(folder / FILE, "", "there are answers; expected another folder")
    with _of_name(made, name, {}, folder) as student:
        seed = student.seed
    with atomic_folder(folder) as place:
        student = made(place, seed, {}, folder)
        student.write()
        lines = [f"# {student.sheet.title}. Write each answer between its quotes."]
        lines += [f"lab = {made.number}", f"name = {json_text(' '.join(name.split()))}", f"seed = {seed}"]
        for position, (key, (question, _)) in enumerate(student.sheet.questions.items(), 1):
            text = textwrap.fill(f"{position}. {question}", 78)
            lines += ["", textwrap.indent(text, "# "), f'{key} = ""']
        write_file(place / FILE, "\n".join(lines) + "\n")
    return seed


def check(made: type[Lab], path: Path) -> Checked:
    """The verdicts on the answers in a file, measured with its seed.

    Raises:
        FileError: the answer file is invalid, or its seed is not its name's.
        RunError: the lab's experiment fails.
    """
    questions = Sheet(made.number).questions
    name, seed, answers = read_answers(path, made.number, questions)
    with _of_name(made, name, answers, path.absolute().parent) as student:
        if seed != student.seed:
            raise FileError(path, "seed", f"the seed of {name} is {student.seed}")
        verdicts = {key: student.verdict(key) for key in questions}
        right = sum(is_right is True for is_right, _ in verdicts.values())
        return Checked(name, seed, verdicts, right, len(questions) - len(student.lacking()))


@contextmanager
def _of_name(made: type[Lab], name: str, answers: Mapping[str, str], home: Path) -> Iterator[Lab]:
    """A lab in a temporary folder, with the name's seed: from `first_seed` on the first that suits it."""
    first = first_seed(name)
    for seed in range(first, first + _TRIES):
        with tempfile.TemporaryDirectory(prefix="tailrace-lab-") as place:
            student = made(Path(place), seed, answers, home)
            student.write()
            if not (problem := student.problem()):
                yield student
                return
    raise SpecError(f"{problem} with the seeds {first} to {seed}; expected another name")
