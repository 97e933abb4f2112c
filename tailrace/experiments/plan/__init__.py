# SPDX-License-Identifier: Apache-2.0
"""From the words of an experiment to what is to be done."""
