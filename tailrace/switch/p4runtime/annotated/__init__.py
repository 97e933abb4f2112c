# SPDX-License-Identifier: Apache-2.0
"""What annotations in P4Info ask beyond the specification: p4-constraints, references, roles."""
