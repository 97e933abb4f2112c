# SPDX-License-Identifier: Apache-2.0
"""From the specs of an experiment to a plan."""
