# SPDX-License-Identifier: Apache-2.0
"""Frames that a host sends without a transport, and what arrives at a host besides flows."""
