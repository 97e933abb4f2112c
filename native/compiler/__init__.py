# SPDX-License-Identifier: Apache-2.0
"""BMv2 JSON -> checked model -> C text -> shared object."""

from native.compiler.emit import emit
from native.compiler.errors import ProgramError
from native.compiler.program import Program, load_program

__all__ = ["Program", "ProgramError", "emit", "load_program"]
