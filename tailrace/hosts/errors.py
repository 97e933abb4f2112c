# SPDX-License-Identifier: Apache-2.0
"""Errors of the hosts, each with one clear line.

HostError
├── ConfigError   an invalid setting or flow
├── JobError      a driver job that cannot be read
└── DeviceError   an interface or a namespace that cannot be used
"""

from __future__ import annotations

from tailrace.spec.errors import Error
from tailrace.spec.keys import out_of_range


class HostError(Error):
    """Any error of this package that a user may see."""


class ConfigError(HostError, ValueError):
    """An invalid setting or flow."""


class JobError(HostError):
    """A driver job that cannot be read."""


class DeviceError(HostError):
    """An interface or a namespace that cannot be used."""


def check_setting(good: bool, message: str) -> None:
    """Refuses an invalid setting of a NIC.

    Raises:
        ConfigError: `good` is false; the error has this message.
    """
    if not good:
        raise ConfigError(f"NIC settings: {message}")


def check_keys(values: object) -> None:
    """Refuses settings outside the ranges of their keys, by ConfigError."""
    problem = out_of_range(values)
    check_setting(not problem, problem)
