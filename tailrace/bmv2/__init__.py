# SPDX-License-Identifier: Apache-2.0
"""What simple_switch_grpc alone needs: its Thrift server, for all that its P4Runtime server refuses."""
