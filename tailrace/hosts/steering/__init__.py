# SPDX-License-Identifier: Apache-2.0
"""Steering: the sender chooses each packet's path, by Spritz (§IV) or an algorithm compared with Spritz."""
