# SPDX-License-Identifier: Apache-2.0
"""Compiles C code on the user's machine: with a confined (sandboxed) compiler and a build cache.

`python -m tailrace.cbuild` prints which cache and which confinement this machine has.
"""
