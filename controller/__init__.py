# SPDX-License-Identifier: Apache-2.0
"""The P4Runtime control plane: writes and maintains the intent of every switch.

scheme, target, topology --intent--> entities of each switch --reconcile--> updates --session--> switch
"""
