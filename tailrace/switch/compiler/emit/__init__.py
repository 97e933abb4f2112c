# SPDX-License-Identifier: Apache-2.0
"""The back end: generates the C text of a program from its checked model."""

from tailrace.switch.compiler.emit.program import emit

__all__ = ["emit"]
