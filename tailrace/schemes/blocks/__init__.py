# SPDX-License-Identifier: Apache-2.0
"""One module for each scheme, named as its P4 program: what the scheme adds to the common entries of a
switch.
"""
