# SPDX-License-Identifier: Apache-2.0
"""Deterministic simulation testing: networks in virtual time with the real controller, faults drawn from a
seed, and invariants ("promises") that are checked in each run.

        python -m checks.soak --seeds 1..200             runs one scenario per seed; prints those that fail
        python -m checks.soak --seed 4711 --shrink       repeats one scenario; shrinks it while it still fails
"""
