# SPDX-License-Identifier: Apache-2.0
"""One module per P4 program, with its name, and modules that several share: the table entries of schemes."""
