# SPDX-License-Identifier: Apache-2.0
"""P4Info annotations beyond the specification: p4-constraints, references, roles."""
