# SPDX-License-Identifier: Apache-2.0
"""Answer files come from students: one line says what is wrong with a file, and nothing in it is executed."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest
import tomli

from tailrace.cli.main import main
from tailrace.labs import course
from tailrace.labs.answers import WrongError, compare, first_seed
from tailrace.labs.lab import check, load_labs, start
from tailrace.spec.errors import FileError, SpecError
from tests.labs.student import Student
from tests.long import long

HOSTILE = {
    "empty": (b"", "lab: expected"),
    "another lab": (b"lab = 2\nseed = 1\n", "lab: expected a number from 1 to 1"),
    "no seed": (b"lab = 1\n", "seed: expected"),
    "a seed of text": (b'lab = 1\nseed = "1"\n', "seed: expected"),
    "a seed that is true": (b"lab = 1\nseed = true\n", "seed: expected"),
    "a huge seed": (b"lab = 1\nseed = 99999999999999\n", "seed: expected"),
    "a negative seed": (b"lab = 1\nseed = -1\n", "seed: expected"),
    "an unknown key": (b"lab = 1\nseed = 1\npaihs = 1\n", "did you mean paths?"),
    "a method": (b"lab = 1\nseed = 1\nwrite = 1\n", "write: no question of lab 1"),
    "an attribute": (b'lab = 1\nseed = 1\n__class__ = "x"\n', "__class__: no question"),
    "a table": (b"lab = 1\nseed = 1\n[pair]\nx = 1\n", "pair: expected a number, or a string"),
    "no name": (b"lab = 1\nseed = 1\n", "name: '': expected a name"),
    "a formula as name": (b"lab = 1\nname = '=1+1'\nseed = 1\n", "name: '=1+1': expected a name"),
    "a long name": (b"lab = 1\nname = '" + b"a" * 150 + b"'\nseed = 1\n", "at most 100"),
    "the seed of another": (b"lab = 1\nname = 'Ada'\nseed = 1\n", "seed: the seed of Ada is "),
    "a list": (b"lab = 1\nseed = 1\npair = [1, 2]\n", "pair: expected a number, or a string"),
    "a date": (b"lab = 1\nseed = 1\npair = 2026-01-01\n", "pair: expected"),
    "a long answer": (b"lab = 1\nseed = 1\npair = '" + b"1" * 300 + b"'\n", "at most 200"),
    "a control character": (b'lab = 1\nseed = 1\npair = "\\u001b[2J"\n', "printable"),
    "two lines": (b'lab = 1\nseed = 1\npair = "1\\n2"\n', "printable"),
    "no TOML": (b"lab = = 1", "not TOML"),
    "no text": (b"\xff\xfe\x00", "not UTF-8"),
    "deep": (b"lab = 1\nseed = 1\npair = " + b"[" * 30000 + b"]" * 30000, "nested too deeply"),
    "large": (b"#" * 70_000, "larger than"),
    "many digits": (b"lab = 1\nseed = " + b"9" * 60_000, "not TOML"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    content, expected = HOSTILE[name]
    path = tmp_path / "answers.toml"
    path.write_bytes(content)
    assert main(["lab", "1", "--check", str(path)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"tailrace: {path}: ")
    assert expected in err


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", ".", "missing.toml"])
def test_what_is_no_file(capsys: pytest.CaptureFixture[str], path: str) -> None:
    assert main(["lab", "1", "--check", path]) == 2
    assert capsys.readouterr().err.startswith(f"tailrace: {path}: ")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--start", "x", "--seed", "Ada"], "the number of a lab, 1 to 6"),
        (["1", "--start", "x"], "--seed YOUR-NAME"),
        (["1", "--start", "x", "--seed", ""], "expected a name"),
        (["1", "--start", "x", "--seed", "\N{LATIN SMALL LETTER L WITH STROKE}\udcff"], "expected a name"),
        (["1", "x"], "--check FILE"),
        (["7"], "the number of a lab, 1 to 6"),
        (["1", "--seed", "Ada"], "--start DIR"),
        (["1", "--start", "x", "--check", "y"], "--start DIR"),
    ],
)
def test_options(capsys: pytest.CaptureFixture[str], words: list[str], expected: str) -> None:
    assert main(["lab", *words]) == 2
    assert expected in capsys.readouterr().err


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab"]) == 0
    assert [line[:3] for line in capsys.readouterr().out.splitlines()] == [
        f"{number}. " for number in range(1, 7)
    ]


def test_answers_are_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    student = Student(1, tmp_path)
    student.check({"paths": "4"})
    before = (student.folder / "answers.toml").read_bytes()
    capsys.readouterr()
    assert main(["lab", "1", "--start", str(student.folder), "--seed", "Ada"]) == 2
    assert "there are answers" in capsys.readouterr().err
    assert (student.folder / "answers.toml").read_bytes() == before


def test_a_name_is_a_seed(tmp_path: Path) -> None:
    """The same name gives the same files, in any case; another name gives another seed."""
    files = {}
    for place, name in (
        ("a", "Ada"),
        ("b", "  ADA"),
        ("c", "Grace Hopper"),
        ("d", 'Łukasz "\\n"'),
    ):
        (tmp_path / place).mkdir()
        folder = Student(1, tmp_path / place, name).folder
        files[place] = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        assert main(["lab", "1", "--check", str(folder / "answers.toml")]) == 1
    assert files["b"].pop("answers.toml") == files["a"].pop("answers.toml").replace(b"Ada", b"ADA")
    assert files["a"] == files["b"]
    assert len({each["lab.toml"] for each in files.values()}) == 3


@pytest.mark.parametrize(("name", "seed"), [("1337", 1337), ("9000", 9000)])
def test_a_number_is_a_seed(name: str, seed: int) -> None:
    assert first_seed(name) == seed


def test_a_matriculation_number_is_a_name() -> None:
    assert 1 <= first_seed("31415926") <= 9000


def test_a_seed_that_shows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one is taken, and the check accepts no other; without any there is a line."""
    made = load_labs()[1]
    monkeypatch.setattr(made, "problem", lambda self: "nothing to see" if self.seed < 16 else "")
    assert start(made, tmp_path / "lab", "14") == 16
    path = tmp_path / "lab" / "answers.toml"
    assert check(made, path).seed == 16
    path.write_text(path.read_text("utf-8").replace("seed = 16", "seed = 14"), "utf-8")
    with pytest.raises(FileError, match="the seed of 14 is 16"):
        check(made, path)
    monkeypatch.setattr(made, "problem", lambda _: "nothing to see")
    with pytest.raises(SpecError, match="nothing to see with the seeds 14 to 43"):
        start(made, tmp_path / "other", "14")


def test_a_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row of CSV for each file, also for one that cannot be checked."""
    paths = [
        Student(1, tmp_path / place, name).folder / "answers.toml"
        for place, name in (("a", "Ada"), ("b", "Bo, B"))
    ]
    seeds = [tomli.loads(path.read_text("utf-8"))["seed"] for path in paths]
    paths[0].write_text(paths[0].read_text("utf-8").replace('paths = ""', 'paths = "4"'), "utf-8")
    paths.insert(1, tmp_path / "missing.toml")
    capsys.readouterr()
    assert main(["lab", "1", "--check", *map(str, paths)]) == 1
    out, err = capsys.readouterr()
    assert list(csv.reader(out.splitlines())) == [
        ["file", "name", "seed", "right", "of"],
        [str(paths[0]), "Ada", str(seeds[0]), "1", "7"],
        [str(paths[1]), "", "", "0", ""],
        [str(paths[2]), "Bo, B", str(seeds[1]), "0", "7"],
    ]
    assert err.splitlines() == [f"tailrace: {paths[1]}: No such file or directory"]


@long
def test_a_class_with_plugins(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """All students name their scheme alike; what their code prints is not in the table."""
    paths = []
    for name, line in (("Ada", "print('0 of 0')"), ("Grace", ""), ("Bo", "import os; os._exit(0)")):
        (tmp_path / name).mkdir()
        path = Student(6, tmp_path / name, name).folder / "answers.toml"
        path.write_text(path.read_text("utf-8").replace('scheme = ""', 'scheme = "mine"', 1), "utf-8")
        mine = path.with_name("mine.py")
        text = mine.read_text("utf-8").replace("return self.port", "return self.rng.choice(self.ports)")
        mine.write_text(f"{text}\n{line}\n", "utf-8")
        paths.append(path)
    capfd.readouterr()
    assert main(["lab", "6", "--check", *map(str, paths)]) == 1
    out, err = capfd.readouterr()
    assert [row[1:4:2] for row in csv.reader(out.splitlines())][1:] == [
        ["Ada", "1"],
        ["Grace", "1"],
        ["", "0"],
    ]
    assert f"{paths[2]}: the process of the check has died" in err


def test_a_check_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(course, "LIMIT_S", 0.01)
    path = Student(1, tmp_path).folder / "answers.toml"
    assert list(course.check_each(1, [path])) == [(path, f"{path}: no result after 0 s")]


def test_a_check_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    student = Student(1, tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    before = sorted(student.folder.iterdir())
    assert student.check({"paths": "4", "pair": "1 2"})[0] == 1
    assert list((tmp_path / "temporary").iterdir()) == []
    assert sorted(student.folder.iterdir()) == before


def test_a_broken_plugin_is_a_wrong_answer(tmp_path: Path) -> None:
    student = Student(6, tmp_path)
    (student.folder / "mine.py").write_text("import nowhere\n", "utf-8")
    shutil.rmtree(student.folder / "p4")
    status, verdicts = student.check({"scheme": "mine", "changes": "1", "p4_scheme": "mine-p4"})
    assert status == 1
    assert verdicts["scheme"][0] == "wrong"
    assert "mine.py: line 1" in verdicts["scheme"][1]
    assert verdicts["changes"] == ("wrong", "this depends on the answer to scheme")
    assert verdicts["p4_scheme"][0] == "wrong"


@pytest.mark.parametrize("answer", ["20us,queue=0", "-1us", "1e9us", "20us fault", "9999999s", "٣us"])
def test_times_are_times_only(tmp_path: Path, answer: str) -> None:
    """An answer does not change other keys of the scheme, and does not run for ever."""
    student = load_labs()[2](tmp_path, 1, {"reorders": answer}, tmp_path)
    student.write()
    assert student.verdict("reorders")[0] is False
    assert student._results == {}


@pytest.mark.parametrize(
    ("answer", "value", "unit", "right"),
    [
        ("12.5", 12.3, "us", True),
        ("12500ns", 12.3, "us", True),
        ("0.0123 ms", 12.3, "us", True),
        ("12.5ms", 12.3, "us", False),
        ("13", 12.3, "us", False),
        ("nan", 12.3, "us", False),
        ("inf", 12.3, "", False),
        ("1" * 100, 12.3, "", False),
        ("3", 3, "", True),
        ("3.1", 3, "", False),
        ("0.62x", 0.6176, "x", True),
        ("0.00", 0.004, "x", True),
        ("Leaf1-spine2", "leaf1-spine2", "", True),
        ("flowcut, ecmp", "ecmp flowcut", "", True),
        ("ecmp and flowcut", "ecmp flowcut", "", True),
        ("ecmp", "ecmp flowcut", "", False),
    ],
)
def test_tolerances(answer: str, value: float | str, unit: str, right: bool) -> None:
    if right:
        assert compare(answer, value, unit, "hint").startswith("the run shows")
        return
    with pytest.raises(WrongError) as error:
        compare(answer, value, unit, "hint")
    assert str(value) not in str(error.value)


@pytest.mark.parametrize("answer", ["1", "1 1", "1 2 3", "1 9", "1 x", "-1 2", "² 1", "1 0"])
def test_pairs_are_two_flows(tmp_path: Path, answer: str) -> None:
    student = load_labs()[1](tmp_path, 1, {"pair": answer}, tmp_path)
    student.write()
    assert student.verdict("pair") == (False, "expected two of the ids 1, 2, 3, 4, 5, 6, 7, 8")
