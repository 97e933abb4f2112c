# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of the native switch: `python -m checks.bench --out DIR`."""
