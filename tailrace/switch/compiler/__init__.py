# SPDX-License-Identifier: Apache-2.0
"""BMv2 JSON -> checked model -> C text -> shared object."""

from tailrace.switch.compiler.errors import ProgramError
from tailrace.switch.compiler.program import Program, load_program

__all__ = ["Program", "ProgramError", "load_program"]
