# SPDX-License-Identifier: Apache-2.0
"""Files of networks, workloads and distributions of flow sizes: a module for each format, a reader and a
writer.

Readers and writers convert between text and plain data (`network.py`, `flow_table.py`); other rooms make a
topology, a workload or a distribution of it. A format is recognised by the content of a file, never by its
name (`registry.py`).
"""
