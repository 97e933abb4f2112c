# SPDX-License-Identifier: Apache-2.0
"""Converts entries given by names and values to P4Runtime messages."""
