# SPDX-License-Identifier: Apache-2.0
"""The reader of BMv2 JSON: checks it and makes the model of the program."""
