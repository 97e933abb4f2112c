# SPDX-License-Identifier: Apache-2.0
"""Tasks: keys that change with whatever decides a result, and folders that keep results."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from tailrace.experiments.plan.experiment import make
from tailrace.results.result import SUMMARY
from tailrace.study.task import finished, key_of, make_task, run_task, write_task_result
from tailrace.tables.arrow import values_of

WORDS = {
    "scheme": "ecmp",
    "topology": "leaf-spine:leaves=2,spines=2,hosts=1",
    "workload": "permutation:size=16KiB",
    "target": "virtual",
}


def small_task(**changes):
    return make_task(make({**WORDS, **changes}), "virtual", label="it", out=Path("it"))


def test_same_words_same_key() -> None:
    """The key is of the words alone, not of the place where the result goes."""
    first, other = small_task(), small_task()
    assert first.key == other.key
    assert make_task(make(WORDS), "virtual", label="x", out=Path("y")).key == first.key


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 9},
        {"scheme": "spray"},
        {"scheme": "ecmp:seed=4"},
        {"workload": "permutation:size=17KiB"},
        {"topology": "leaf-spine:leaves=2,spines=3,hosts=1"},
        {"window": "1.5BDP"},
        {"mtu": "2KiB"},
        {"transport": "sr"},
        {"fault": "drop:rate=0.1"},
        {"sample": "1us"},
        {"follow": [1]},
    ],
)
def test_key_changes_with_whatever_decides_the_result(change) -> None:
    """Any other words are another task."""
    assert small_task(**change).key != small_task().key


def test_key_changes_with_what_a_file_holds(tmp_path: Path) -> None:
    """The words name a file, and the key is of its content."""
    path = tmp_path / "flows.csv"
    path.write_text("src,dst,bytes,start\nh1,h2,1000,0\n")
    experiment = make({**WORDS, "workload": str(path)})
    before = key_of(experiment)
    path.write_text("src,dst,bytes,start\nh1,h2,1001,0\n")
    assert key_of(experiment) != before


def test_result_is_kept_and_found_again(tmp_path: Path) -> None:
    """A folder whose summary bears the key is the result; another task does not take it for its own."""
    task = small_task()
    assert finished(task, tmp_path) is None
    result = run_task(task)
    write_task_result(task, result, tmp_path)
    stored = finished(task, tmp_path)
    assert stored is not None
    assert (stored.summary, stored.rows) == (result.summary, result.rows)
    assert finished(small_task(seed=9), tmp_path) is None


def test_half_a_result_is_none(tmp_path: Path) -> None:
    """Rows that are missing, or a summary that is not one, mean that the task is run again."""
    task = small_task()
    write_task_result(task, run_task(task), tmp_path)
    (tmp_path / "it" / "flows.parquet").unlink()
    assert finished(task, tmp_path) is None
    (tmp_path / "it" / SUMMARY).write_text("{}")
    assert finished(task, tmp_path) is None


def test_task_and_result_can_be_pickled() -> None:
    """So that any process can run the one and hand back the other."""
    task = small_task(sample="1us", follow=[1])
    result = run_task(pickle.loads(pickle.dumps(task)))
    copy = pickle.loads(pickle.dumps(result))
    assert (copy.summary, copy.rows) == (result.summary, result.rows)
    assert result.timelines.paths is not None
    assert values_of(result.timelines.paths) == values_of(copy.timelines.paths)
