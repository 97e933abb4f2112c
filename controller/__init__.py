# SPDX-License-Identifier: Apache-2.0
"""The P4Runtime control plane: an intent becomes entries on every switch, and stays there.

scheme, target, topology --intent--> entities of each switch --reconcile--> updates --session--> switch
"""
