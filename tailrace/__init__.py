# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F403, F405
"""Tailrace: load balancing without reordering, in P4.

    import tailrace

    result = tailrace.run(
        scheme="flowcut:variant=ingress",
        topology="fat-tree:k=4",
        workload="permutation:size=256KiB",
        target="virtual",
        seed=1,
    )
    result.summary.fct_ns.mean                  # a summary, as in summary.json
    result.flows                                # an Arrow table, one row per flow
    tailrace.figure(result).savefig("flowcut.svg")

    # "basic": an experiment file that Tailrace contains (experiments/presets)
    tailrace.compare("basic", schemes=["ecmp", "flowcut:variant=nic"])
    tailrace.sweep("basic", {"scheme": ["ecmp", "flowcut"], "seed": range(1, 6)}, workers=2)

The rest of the package is loaded when one of these names is first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailrace.api import *

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

if not TYPE_CHECKING:  # with this, type checkers would accept any name

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module("tailrace.api"), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
