# SPDX-License-Identifier: Apache-2.0
"""Experiments in real time, in Mininet; and replays of traces on BMv2."""
