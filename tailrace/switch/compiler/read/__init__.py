# SPDX-License-Identifier: Apache-2.0
"""From BMv2's JSON to the model of a program."""
