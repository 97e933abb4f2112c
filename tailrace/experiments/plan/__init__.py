# SPDX-License-Identifier: Apache-2.0
"""Turns the specs of an experiment into a plan: a job for a backend, with every default resolved."""
