# SPDX-License-Identifier: Apache-2.0
"""Saved traces: files with a packet and the entities that it used, their replay, their export as tests."""
