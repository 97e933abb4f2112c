# SPDX-License-Identifier: Apache-2.0
"""The words of the command line: quantities with units, and name:key=value,key=value."""

from spec.errors import SpecError, UnitError
from spec.words import Options, Words, parse

__all__ = ["Options", "SpecError", "UnitError", "Words", "parse"]
