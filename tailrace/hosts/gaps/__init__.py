# SPDX-License-Identifier: Apache-2.0
"""Gaps between packets: how they are measured, learnt and stretched (HF2T). All modules are compiled."""
