# SPDX-License-Identifier: Apache-2.0
"""Faults from specs such as ``link-slow:link=leaf1-spine1,factor=0.1``; `tailrace faults` lists them."""

from __future__ import annotations

from tailrace.experiments.faults.fault import FAULTS, Fault
from tailrace.spec.registry import load_folder

__all__ = ["FAULTS", "parse_fault"]

load_folder(__package__)


def parse_fault(text: str) -> Fault:
    """The fault that a spec describes.

    Raises:
        SpecError: unknown name or bad option; the message, one line, names it.
    """
    # `kind`: the struct of this kind of fault, with the options of the spec
    spec, kind = FAULTS.parse(text)
    return Fault(str(spec), spec.name, kind)
