# SPDX-License-Identifier: Apache-2.0
"""Values of papers' figures that are not in a run's summary."""
