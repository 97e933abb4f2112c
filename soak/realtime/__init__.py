# SPDX-License-Identifier: Apache-2.0
"""Chaos in real time: native switches in namespaces of their own, with controllers, traffic and bad clients.

`place` is the network, `chaos` what happens to it, drawn from a seed, `abuse` the bad clients, `probe` and
`measure` what is seen meanwhile, `judge` what must hold, `restarts` how long it takes to come back.
"""
