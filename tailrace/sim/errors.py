# SPDX-License-Identifier: Apache-2.0
"""Errors of experiments; each is one line that a user understands.

SpecError            bad specs, files and keys (spec/errors.py)          exit 2
└── TargetError      the requested target cannot run on this machine      exit 2
RunError             the run itself failed                                exit 1
KeyboardInterrupt
└── Interrupted      a signal asked to stop (signals.py)         exit 129, 130, 143
"""

from __future__ import annotations

from tailrace.spec import Error, SpecError


class TargetError(SpecError):
    """The requested target needs something that is missing: a program, Mininet, or the right to use it."""


class RunError(Error, RuntimeError):
    """A run that could not be finished."""
