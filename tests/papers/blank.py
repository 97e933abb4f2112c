# SPDX-License-Identifier: Apache-2.0
"""A document of a figure that says nothing yet."""

from __future__ import annotations

from typing import Any

from tailrace.papers.document import Document


def blank(**changes: Any) -> Document:
    """Bars at the paper's scale, but for the changes, which are fields of Document."""
    nothing: dict[str, Any] = {
        "name": "some",
        "paper": "Some",
        "figure": "Fig. 1",
        "title": "",
        "source": "",
        "about": "",
        "kind": "runs",
        "chart": "bars",
        "scale": "paper",
        "command": "",
        "version": None,
        "metrics": (),
        "cells": (),
        "claims": (),
    }
    return Document(**{**nothing, **changes})
