# SPDX-License-Identifier: Apache-2.0
"""Experiments: topology + scheme + workload + faults + seed -> one row per flow -> summary, table, figure."""
