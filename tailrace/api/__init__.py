# SPDX-License-Identifier: Apache-2.0
"""What `import tailrace` offers, gathered; the command line calls the same functions."""

from tailrace.api.experiment import Keys, experiment
from tailrace.api.run import compare, figure, repeat, run, sweep
from tailrace.experiments.errors import RunError, TargetError
from tailrace.experiments.plan.experiment import Experiment
from tailrace.experiments.results.result import Result, open_result
from tailrace.experiments.results.summary import Summary
from tailrace.experiments.run.compare import Comparison, open_comparison
from tailrace.experiments.run.sweep import Sweep, open_sweep
from tailrace.words.errors import Error, FileError, SpecError

__all__ = [
    "Comparison",
    "Error",
    "Experiment",
    "FileError",
    "Keys",
    "Result",
    "RunError",
    "SpecError",
    "Summary",
    "Sweep",
    "TargetError",
    "compare",
    "experiment",
    "figure",
    "open_comparison",
    "open_result",
    "open_sweep",
    "repeat",
    "run",
    "sweep",
]
