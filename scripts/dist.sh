#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and checks dist/: an sdist, and of it a wheel with compiled code. The same commit, Python and compiler give
# the same wheel, byte by byte, and an sdist of the same content.
set -euo pipefail
cd "$(dirname "$0")/.."

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH TAILRACE_BINARIES=1
umask 022
.venv/bin/python -m pip --disable-pip-version-check install --quiet --requirement requirements/dist.txt
rm -rf build/lib.* dist
.venv/bin/python -m build --no-isolation
.venv/bin/twine check --strict dist/*
