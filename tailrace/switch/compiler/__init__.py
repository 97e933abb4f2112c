# SPDX-License-Identifier: Apache-2.0
"""The compiler of the native switch: BMv2 JSON -> checked model -> C text -> shared object."""

from tailrace.switch.compiler.errors import CompilerError
from tailrace.switch.compiler.program import SwitchProgram, load_program

__all__ = ["CompilerError", "SwitchProgram", "load_program"]
