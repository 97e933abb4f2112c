# SPDX-License-Identifier: Apache-2.0
"""Specs of the command line and of files: quantities with units, and name:key=value,key=value."""

from tailrace.spec.errors import Error, SpecError, UnitError
from tailrace.spec.spec_string import Spec, parse

__all__ = ["Error", "Spec", "SpecError", "UnitError", "parse"]
