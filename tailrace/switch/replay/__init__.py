# SPDX-License-Identifier: Apache-2.0
"""Saved traces: a packet with all that it has touched, in one file, and the same packet elsewhere."""
