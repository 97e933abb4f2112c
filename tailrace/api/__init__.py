# SPDX-License-Identifier: Apache-2.0
"""What `import tailrace` offers, gathered; the command line calls the same functions."""

from tailrace.api.experiment import Keys, experiment
from tailrace.api.run import compare, figure, repeat, run, sweep
from tailrace.experiments.plan.experiment import Experiment
from tailrace.results.result import Result, open_result
from tailrace.results.summary import Summary
from tailrace.sim.errors import RunError, TargetError
from tailrace.spec.errors import Error, FileError, SpecError
from tailrace.study.compare import Comparison, open_comparison
from tailrace.study.sweep import Sweep, open_sweep

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
