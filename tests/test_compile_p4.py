# SPDX-License-Identifier: Apache-2.0
"""scripts/compile_p4.py: --check notices every difference of sources and output, without a compiler; output
says what p4c says, is the same from any folder, and a change of one thing is a change of its lines.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from finsy.proto import p4i
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from scripts.compile_p4 import INNER_LISTS, compile_program, compiler, json_lines, relocate

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "compile_p4.py"
PROGRAMS = ROOT / "tests" / "programs"


def check(source: Path) -> subprocess.CompletedProcess[str]:
    """Run --check on a folder with its build folder inside, with no compiler on PATH."""
    command = [sys.executable, str(SCRIPT), "--check", str(source), str(source / "build")]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": ""})


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the test programs and their output."""
    return Path(shutil.copytree(PROGRAMS, tmp_path / "programs"))


def test_committed_output_is_up_to_date() -> None:
    done = check(PROGRAMS)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "verb"),
    [("common/base.p4", "has changed"), ("build/loops.json", "has changed"), ("extra.p4", "is new")],
)
def test_a_changed_or_new_file_is_named(copy: Path, name: str, verb: str) -> None:
    with (copy / name).open("a", encoding="utf-8") as file:
        file.write("\n")
    done = check(copy)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert f"{name} {verb}" in done.stderr


def test_a_removed_source_is_named(copy: Path) -> None:
    (copy / "common" / "base.p4").unlink()
    done = check(copy)
    assert done.returncode == 1
    assert "common/base.p4 is gone" in done.stderr


def test_output_without_a_program_is_named(copy: Path) -> None:
    (copy / "build" / "old.json").write_text("{}", "utf-8")
    done = check(copy)
    assert done.returncode == 1
    assert "old.json: belongs to no program" in done.stderr


def test_a_missing_folder_is_bad_usage(tmp_path: Path) -> None:
    done = check(tmp_path / "nowhere")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


BUILDS = [ROOT / "p4src" / "build", PROGRAMS / "build"]
JSON_FILES = [path for build in BUILDS for path in sorted(build.glob("*.json"))]


def text_of(document: dict[str, object]) -> str:
    return json_lines(document, document.keys()) + "\n"


@pytest.mark.parametrize("path", JSON_FILES, ids=lambda path: path.stem)
def test_json_has_its_form(path: Path) -> None:
    """A line an element, and no path of the machine that it was made on."""
    text = path.read_text("utf-8")
    document = json.loads(text)
    same = text_of(document) == text
    assert same, "differs; no diff, for that would be long"
    source = path.parent.parent
    names = {part.split('"')[0] for part in text.split('"filename":"')[1:]} - {""}
    assert {name for name in names if not (source / name).is_file()} <= {"core.p4", "v1model.p4"}
    assert (source / document["program"]).is_file()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["a", "é", *INNER_LISTS]), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), VALUES))
def test_any_json_is_the_same_in_lines(document: dict[str, object]) -> None:
    """Its keys in the same order."""
    assert json.dumps(json.loads(text_of(document))) == json.dumps(document)


def test_a_change_is_a_line() -> None:
    """One primitive, one table: what a diff shows."""
    before = (PROGRAMS / "build" / "registers.json").read_text("utf-8")
    after = json.loads(before)
    action = next(each for each in after["actions"] if len(each["primitives"]) > 1)
    action["primitives"][1]["parameters"].append({"type": "hexstr", "value": "0x2a"})
    after["pipelines"][0]["tables"][-1]["max_size"] = 77
    changed = set(text_of(after).splitlines()) - set(before.splitlines())
    assert sorted("0x2a" in line for line in changed) == [False, True]


@pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="no p4c-bm2-ss on PATH")
@pytest.mark.parametrize("name", ["basic_l3", "p4rt/p4rt_all"])
def test_committed_output_is_what_p4c_says(name: str, tmp_path: Path) -> None:
    """Byte by byte from another folder, and as JSON and P4Info what p4c itself writes."""
    source = Path(shutil.copytree(PROGRAMS, tmp_path / "elsewhere", ignore=shutil.ignore_patterns("build")))
    build = tmp_path / "out"
    build.mkdir()
    program = source / f"{name}.p4"
    compile_program(compiler(), source, program, build)
    for made in sorted(build.iterdir()):
        assert made.read_bytes() == (PROGRAMS / "build" / made.name).read_bytes()
    raw_json, raw_info = tmp_path / "raw.json", tmp_path / "raw.txtpb"
    outputs = ["--p4runtime-files", str(raw_info), "-o", str(raw_json)]
    command = ["p4c-bm2-ss", "--arch", "v1model", "-I", ".", *outputs, f"{name}.p4"]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    raw = json.loads(raw_json.read_text("utf-8"))
    relocate(raw, source)
    assert raw | {"program": f"{name}.p4"} == json.loads((build / f"{program.stem}.json").read_text("utf-8"))
    infos = [
        text_format.Parse(path.read_text("utf-8"), p4i.P4Info())
        for path in (raw_info, build / f"{program.stem}.p4info.txtpb")
    ]
    assert infos[0] == infos[1]
