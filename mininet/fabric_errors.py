# SPDX-License-Identifier: Apache-2.0
"""Errors of the Mininet harness; each is one line for the user.

FabricError        the run failed: exit 1
  InputError       the job, or this machine, does not allow the run: exit 2
"""

from __future__ import annotations


class FabricError(Exception):
    """The run failed; `exit_code` is what the process ends with."""

    exit_code = 1


class InputError(FabricError):
    """The job asks for what cannot be done, or something is missing on this machine."""

    exit_code = 2
