# SPDX-License-Identifier: Apache-2.0
"""Files of networks, workloads and sizes of flows: a module a format, which reads and writes plain data."""
