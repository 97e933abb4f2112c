# SPDX-License-Identifier: Apache-2.0
"""Runs single experiments and grids of experiments, and stores their results."""
