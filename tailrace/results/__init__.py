# SPDX-License-Identifier: Apache-2.0
"""What a run gives: rows, summaries, events, tables."""
