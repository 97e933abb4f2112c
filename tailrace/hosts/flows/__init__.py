# SPDX-License-Identifier: Apache-2.0
"""Flows, what waits for what, and what was seen of them; interpreted."""
