# SPDX-License-Identifier: Apache-2.0
"""C text from a checked model."""

from tailrace.switch.compiler.emit.program import emit

__all__ = ["emit"]
