# SPDX-License-Identifier: Apache-2.0
"""Experiment files: TOML with the keys of experiments/experiment.py.

    scheme = "flowcut:variant=ingress"
    topology = "fat-tree:k=4,rate=10Gbps"
    workload = "permutation:size=256KiB"
    fault = ["link-slow:fraction=0.1,factor=0.1"]
    seed = 7

Paths in a file (FILE.json, FILE.csv) count from the folder in which the command runs, as on the command line.
"""

from __future__ import annotations

from pathlib import Path

import tomli

from experiments.errors import FileError
from experiments.experiment import Experiment, KeyProblemError, make


def read_experiment(path: Path) -> Experiment:
    """The experiment of a file.

    Raises:
        FileError: the file cannot be read, or a key or value is not what was expected.
    """
    try:
        values = tomli.loads(path.read_text("utf-8"))
    except OSError as error:
        raise FileError(path, "", error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise FileError(path, "", "not UTF-8 text") from error
    except tomli.TOMLDecodeError as error:
        raise FileError(path, "", f"not TOML: {error}") from error
    try:
        return make(values)
    except KeyProblemError as error:
        raise FileError(path, f"key '{error.key}'", error.problem) from error
