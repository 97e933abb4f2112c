# SPDX-License-Identifier: Apache-2.0
"""One file a kind of entity: from messages to calls of the switch, and back."""
