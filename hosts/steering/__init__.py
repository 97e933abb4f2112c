# SPDX-License-Identifier: Apache-2.0
"""Which path each packet takes: load balancing by the sender (Spritz §IV), and what it is compared with."""

from __future__ import annotations

from hosts.config import SteeringConfig
from hosts.paths import PathList
from hosts.steering.base import Steering
from hosts.steering.pilot import Pilot, make_steering

__all__ = ["PathList", "Pilot", "Steering", "SteeringConfig", "make_steering"]
