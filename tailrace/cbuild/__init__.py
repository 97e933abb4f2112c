# SPDX-License-Identifier: Apache-2.0
"""Compiling on the user's machine: a confined compiler, and the cache of what it made.

`python -m tailrace.cbuild` says which cache and which confinement there are here.
"""
