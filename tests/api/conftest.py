# SPDX-License-Identifier: Apache-2.0
"""A run that takes no time."""

from __future__ import annotations

import tailrace

KEYS = {
    "topology": "leaf-spine:leaves=2,spines=2,hosts=1",
    "workload": "permutation:size=16KiB",
    "target": "virtual",
}
TINY = tailrace.experiment(
    scheme="ecmp",
    topology=KEYS["topology"],
    workload=KEYS["workload"],
    target=KEYS["target"],
    seed=3,
)
