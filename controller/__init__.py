# SPDX-License-Identifier: Apache-2.0
"""The P4Runtime control plane: writes every switch's intent (the program and the entities that it should
have), and repairs differences.

scheme, target, topology --intent--> entities of each switch --reconcile--> updates --session--> switch
"""
