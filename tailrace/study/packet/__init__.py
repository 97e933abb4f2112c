# SPDX-License-Identifier: Apache-2.0
"""The history of a packet of a finished run in virtual time, from a repeated run."""
