# SPDX-License-Identifier: Apache-2.0
"""P4Runtime's entities, a module per kind: it converts messages to calls of the switch core, and back."""
