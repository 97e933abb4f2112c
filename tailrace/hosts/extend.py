# SPDX-License-Identifier: Apache-2.0
"""The interface for plug-ins: transports, and steering algorithms, which choose paths (docs/extend).

Plug-ins are plain Python classes, called for each packet, in virtual and in real time. The NICs' built-in
algorithms are compiled by mypyc; of the compiled classes, plug-ins may subclass only those exported here.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from tailrace.codec.calls import NEVER
from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import ALGORITHMS, ANY, NicConfig, SteeringConfig
from tailrace.hosts.options.transport import Transport
from tailrace.hosts.options.transport import transport as declare
from tailrace.hosts.steering.assign import MAKERS
from tailrace.hosts.steering.base import ACK, ACK_ECN, NACK, TIMEOUT, Steering
from tailrace.hosts.transport import ENDS
from tailrace.hosts.transport.base import NOTHING, OneTimerSender, Receiver, Sender
from tailrace.hosts.transport.go_back_n import GoBackNReceiver, GoBackNSender
from tailrace.hosts.transport.selective_repeat import SelectiveRepeatReceiver, SelectiveRepeatSender
from tailrace.spec import SpecError, keys, plugins
from tailrace.spec.registry import check_name
from tailrace.spec.text import one_line

T = TypeVar("T", bound=type[Transport])
S = TypeVar("S", bound=type[Steering])


_ABSTRACT: dict[type, dict[str, int]] = {
    Steering: {"next_ev": 1, "on_feedback": 3},
    Sender: {"peek": 0, "on_sent": 2, "on_ack": 6, "on_trimmed": 4, "on_time": 1},
    OneTimerSender: {"_advance": 1, "_on_progress": 0, "_on_nak": 1, "_on_timeout": 0, "on_echo": 3},
    Receiver: {"on_trimmed": 1, "_deliver": 0, "_beyond": 0},
}
"""Abstract methods of each base class, with their numbers of arguments (without self). Compiled classes
list neither.
"""


_RETURNS = {"next_ev": int, "peek": int, "window_open_after": bool, "asks_at": bool}
"""The result types of methods. On other types, compiled NICs fail without naming the plug-in's file."""


def _typed(method: Callable[..., Any], kind: type) -> Callable[..., Any]:
    """The method with a check of its result type."""

    @functools.wraps(method)
    def checked(*args: Any) -> Any:
        value = method(*args)
        if type(value) is not kind:
            what = one_line(repr(value), 80)
            raise SpecError(
                f"{plugins.place_of(method)}: {method.__name__} returned {what}, expected {kind.__name__}"
            )
        return value

    return checked


def _check_methods(what: str, made: type) -> None:
    """Refuses methods with a wrong number of arguments, which compiled NICs could not call."""
    for part in made.__mro__:
        for name, count in _ABSTRACT.get(part, {}).items():
            try:
                inspect.signature(getattr(made, name)).bind(*range(count + 1))
            except ValueError:  # a built-in, compiled method, which has no signature
                continue
            except TypeError:
                raise SpecError(f"{what}: {made.__name__}.{name} must take {count} arguments") from None


def _checked(what: str, made: object, base: type, arguments: int) -> Any:
    """The class `made`, if NICs can use it as a subclass of `base`; otherwise raises SpecError.

    Args:
        what: name of the transport or steering, for messages.
        arguments: number of arguments of the class's constructor.
    """
    if not (isinstance(made, type) and issubclass(made, base)):
        raise SpecError(f"{what}: expected a subclass of {base.__name__}")
    # abstract methods that no class between `made` and the base class overrides
    lacking = [
        name
        for part in made.__mro__
        for name in _ABSTRACT.get(part, ())
        if next(owner for owner in made.__mro__ if name in vars(owner)) is part
    ]
    if lacking:
        raise SpecError(f"{what}: {made.__name__} lacks {', '.join(lacking)}")
    try:
        inspect.signature(made).bind(*range(arguments))
    except TypeError:
        raise SpecError(f"{what}: {made.__name__} must take {arguments} arguments") from None
    _check_methods(what, made)
    for part in made.__mro__[: made.__mro__.index(base)]:
        for name in _RETURNS.keys() & vars(part).keys():
            if plugins.place_of(part):  # defined by a plug-in
                setattr(part, name, _typed(vars(part)[name], _RETURNS[name]))
    return made


def transport(sender: type[Sender], receiver: type[Receiver]) -> Callable[[T], T]:
    """Registers a transport; decorates the struct that declares its keys.

    Args:
        sender: the sending side of a flow; called with (number of packets, NicConfig, source port,
            random.Random). The values of the transport's keys are in NicConfig.parameters.
        receiver: the receiving side; called with (number of packets, NicConfig).

    Raises:
        SpecError: a class is unsuitable, or the name is invalid or taken.
    """

    def add(kind: T) -> T:
        what = f"transport {kind.name!r}"
        _checked(what, sender, Sender, 4)
        _checked(what, receiver, Receiver, 2)
        declare(kind)
        ENDS[kind.name] = (sender, receiver)
        return kind

    return add


def steering(name: str) -> Callable[[S], S]:
    """Registers a steering algorithm, which chooses the paths of a flow's packets; decorates its class.

    Each flow has an object of the class, made with (SteeringConfig, PathList, hash of the flow's 5-tuple,
    random.Random).

    Raises:
        SpecError: the class is unsuitable, or the name is invalid or taken.
    """
    check_name("steering", name)
    if name in ALGORITHMS:
        raise SpecError(f"steering {name!r} is registered twice")

    def add(kind: S) -> S:
        MAKERS[name] = _checked(f"steering {name!r}", kind, Steering, 4)
        ALGORITHMS[name] = ANY
        return kind

    return add


__all__ = [
    "ACK",
    "ACK_ECN",
    "NACK",
    "NEVER",
    "NOTHING",
    "TIMEOUT",
    "GoBackNReceiver",
    "GoBackNSender",
    "NicConfig",
    "OneTimerSender",
    "PathList",
    "Receiver",
    "SelectiveRepeatReceiver",
    "SelectiveRepeatSender",
    "Sender",
    "SpecError",
    "Steering",
    "SteeringConfig",
    "Transport",
    "keys",
    "steering",
    "transport",
]
