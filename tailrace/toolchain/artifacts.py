# SPDX-License-Identifier: Apache-2.0
"""Where the things are that are no Python: compiled P4 programs, C sources, the Mininet harness."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of the package `tailrace`."""

ROOT = PACKAGE.parent
"""The checkout."""

P4_BUILD = ROOT / "p4src" / "build"
"""The compiled programs: NAME.json and NAME.p4info.txtpb."""

RUNTIME = PACKAGE / "native" / "runtime" / "c"
"""The C core of the native switch, with the headers that compiled programs include."""

CODEC = PACKAGE / "codec" / "c"
"""What reads and writes frames in C, and the port between C and a NIC in Python."""

VIRTUAL = PACKAGE / "native" / "virtual" / "c"
"""The virtual-time network in C."""

MININET = ROOT / "mininet"
"""The scripts that run a network in real time."""
