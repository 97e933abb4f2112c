# SPDX-License-Identifier: Apache-2.0
"""Flowcut: a flow keeps its path while any of its packets is in flight."""
