# SPDX-License-Identifier: Apache-2.0
"""Defaults of an experiment; presets/ has larger sets of settings."""

from __future__ import annotations

TOPOLOGY = "leaf-spine:leaves=2,spines=4,hosts=4,rate=10Gbps,delay=1us"
_WORKLOAD = "permutation:size=1MiB,peers=remote"
_SMALL_WORKLOAD = "permutation:size=256KiB,peers=remote"

SEED = 2
"""With this seed ECMP puts several flows of a default workload on one uplink of TOPOLOGY, and some on the
link that presets/basic.toml slows down: tests/experiments/test_default_run.py checks this."""

MTU_BYTES = 1024
"""Payload of a full packet."""

PRESET = "basic"
"""The preset whose schemes `tailrace compare` takes by default; ratios are relative to its first scheme."""


def workload(target: str) -> str:
    """The default workload: smaller on BMv2, whose links are several times slower than other targets'."""
    return _SMALL_WORKLOAD if target == "bmv2" else _WORKLOAD
