# SPDX-License-Identifier: Apache-2.0
"""BMv2: a simple_switch_grpc process, its Thrift server and its gRPC data plane."""
