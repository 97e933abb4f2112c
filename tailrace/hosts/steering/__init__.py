# SPDX-License-Identifier: Apache-2.0
"""Steering: the sender chooses each packet's path, by Spritz (§IV) or an algorithm compared with Spritz."""

from __future__ import annotations

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import SteeringConfig
from tailrace.hosts.steering.assign import SteeringFactory
from tailrace.hosts.steering.base import Steering

__all__ = ["PathList", "Steering", "SteeringConfig", "SteeringFactory"]
