# SPDX-License-Identifier: Apache-2.0
"""Simulated disasters: networks in virtual time with the real controller, in which a seed breaks what can
break, and promises that are checked all the way (deterministic simulation testing).

    python -m checks.soak --seeds 1..200             each seed is a scenario; one line for each that fails
    python -m checks.soak --seed 4711 --shrink       the same again, and then as small as it still fails
"""
