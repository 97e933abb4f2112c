# SPDX-License-Identifier: Apache-2.0
"""The results of runs: rows of flows, summaries, events, tables."""
