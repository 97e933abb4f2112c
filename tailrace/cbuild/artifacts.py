# SPDX-License-Identifier: Apache-2.0
"""Paths of files that are not Python modules: compiled P4 programs, C sources, the Mininet scripts.

All are in the package. In a checkout some are symbolic links to top-level folders; a wheel has the folders.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of the package `tailrace`."""

ROOT = PACKAGE.parent
"""The folder to import `tailrace` from: the checkout, or the folder where it is installed."""

P4_SOURCES = (PACKAGE / "p4src").resolve()
"""The folder of the P4 sources, in which p4c runs: names of sources are relative to it."""

P4_BUILD = P4_SOURCES / "build"
"""The compiled programs: NAME.json and NAME.p4info.txtpb."""

RUNTIME = PACKAGE / "switch" / "core" / "c"
"""The C core of the native switch, with the headers that compiled programs include."""

CODEC = PACKAGE / "codec" / "c"
"""C code that parses and writes frames, and that connects a C port to a NIC in Python."""

VIRTUAL = PACKAGE / "sim" / "network" / "c"
"""The virtual-time network in C."""

MININET = (PACKAGE / "mininet").resolve()
"""The scripts that run a network in real time in Mininet."""

PREBUILT = PACKAGE / "prebuilt"
"""The compiled code of a binary wheel (setup.py), for machines without a C compiler; absent elsewhere."""
