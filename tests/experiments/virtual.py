# SPDX-License-Identifier: Apache-2.0
"""Experiments given in words, run in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.results.result import Result
from tailrace.sim.network import Network
from tailrace.sim.run import VirtualBackend
from tailrace.study.task import run


def result_of(
    words: Mapping[str, Any], look: Callable[[Network], None] | None = None, label: str = "it"
) -> Result:
    """What comes of an experiment; `look` is handed its network before it begins."""
    return run(plan(make(words), "virtual"), VirtualBackend(look), lambda _progress: None, label=label)
