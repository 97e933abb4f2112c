# SPDX-License-Identifier: Apache-2.0
"""Entries as people write them, by names and values, as P4Runtime messages."""
