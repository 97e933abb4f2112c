# SPDX-License-Identifier: Apache-2.0
"""What can be said of a NIC; interpreted, while what acts on it is compiled."""
