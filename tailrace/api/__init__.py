# SPDX-License-Identifier: Apache-2.0
"""The Python API of `import tailrace`; the command line calls the same functions."""

from tailrace.api.convert import convert
from tailrace.api.experiment import Keys, experiment
from tailrace.api.run import compare, figure, repeat, run, sweep
from tailrace.experiments.plan.experiment import Experiment
from tailrace.results.result import Result, open_result
from tailrace.results.results import Results, open_results
from tailrace.results.summary import Summary
from tailrace.sim.errors import RunError, TargetError
from tailrace.spec.errors import Error, FileError, SpecError
from tailrace.viewer.view import view

__all__ = [
    "Error",
    "Experiment",
    "FileError",
    "Keys",
    "Result",
    "Results",
    "RunError",
    "SpecError",
    "Summary",
    "TargetError",
    "compare",
    "convert",
    "experiment",
    "figure",
    "open_result",
    "open_results",
    "repeat",
    "run",
    "sweep",
    "view",
]
