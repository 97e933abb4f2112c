# SPDX-License-Identifier: Apache-2.0
"""What is measured for a paper's figure beyond a run's summary."""
