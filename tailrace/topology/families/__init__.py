# SPDX-License-Identifier: Apache-2.0
"""One file a family of networks: what its spec means, and what it consists of."""
