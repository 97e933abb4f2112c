# SPDX-License-Identifier: Apache-2.0
"""The reader of BMv2 JSON: checks a program and creates its model."""
