# SPDX-License-Identifier: Apache-2.0
"""Differential test of the native switch against BMv2's simple_switch_grpc, packet by packet."""
