# SPDX-License-Identifier: Apache-2.0
"""Names of topology families on which paths or checks depend."""

DRAGONFLY, SLIM_FLY, LEAF_SPINE = "dragonfly", "slim-fly", "leaf-spine"
