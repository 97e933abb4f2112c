# SPDX-License-Identifier: Apache-2.0
"""Where the things are that are no modules: compiled P4 programs, C sources, the Mininet harness.

All lie in the package: in a checkout some are links there to folders at the top, in a wheel the folders are.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of the package `tailrace`."""

ROOT = PACKAGE.parent
"""What to import `tailrace` from: the checkout, or where it is installed."""

P4_SOURCES = (PACKAGE / "p4src").resolve()
"""Where the programs are compiled: names of sources begin here."""

P4_BUILD = P4_SOURCES / "build"
"""The compiled programs: NAME.json and NAME.p4info.txtpb."""

RUNTIME = PACKAGE / "switch" / "core" / "c"
"""The C core of the native switch, with the headers that compiled programs include."""

CODEC = PACKAGE / "codec" / "c"
"""What reads and writes frames in C, and the port between C and a NIC in Python."""

VIRTUAL = PACKAGE / "sim" / "network" / "c"
"""The virtual-time network in C."""

MININET = (PACKAGE / "mininet").resolve()
"""The scripts that run a network in real time."""
