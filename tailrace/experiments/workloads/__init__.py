# SPDX-License-Identifier: Apache-2.0
"""Workloads: who sends how much to whom, and when."""
