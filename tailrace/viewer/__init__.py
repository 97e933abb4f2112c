# SPDX-License-Identifier: Apache-2.0
"""A replay of a finished run: one HTML page that contains the run's record, and what draws it."""
