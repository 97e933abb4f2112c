# SPDX-License-Identifier: Apache-2.0
"""Runs in real time."""
