# SPDX-License-Identifier: Apache-2.0
"""Makes the steering of a flow when the flow starts, and shares what flows know of paths (Spritz §IV).

A flow's steering is the object that chooses its paths. With Scout and Spray what is known of paths can be
kept between connections, until it is stale (§IV, Connection Established): if `keep_ns` is not 0, concurrent
flows to the same host share it, and so does a flow that starts at most `keep_ns` after the last of them has
ended.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from tailrace.hosts.errors import ConfigError
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.dcqcn import HermesNicConfig
from tailrace.hosts.options.nic import ALGORITHMS, ANY, FLOWBENDER, HERMES, NicConfig, SteeringConfig
from tailrace.hosts.steering.base import Steering
from tailrace.hosts.steering.flicr import Flicr
from tailrace.hosts.steering.flowbender import FlowBender
from tailrace.hosts.steering.hermes import Hermes
from tailrace.hosts.steering.hermes_paths import HermesHost, HermesPaths
from tailrace.hosts.steering.oblivious import FlowEcmp, Ops
from tailrace.hosts.steering.path_state import PathState
from tailrace.hosts.steering.plb import Plb
from tailrace.hosts.steering.reps import RecycledFifo, Reps
from tailrace.hosts.steering.scout import Scout
from tailrace.hosts.steering.spray import Spray
from tailrace.hosts.steering.spritz import Spritz
from tailrace.hosts.steering.uet import UetBitmap, UetMixed, UetOblivious

Make = Callable[[SteeringConfig, PathList, int, random.Random], Steering]

SCOUT, SPRAY = "scout", "spray"

MAKERS: dict[str, Make] = {
    SCOUT: Scout,
    SPRAY: Spray,
    "ops": Ops,
    "ecmp": FlowEcmp,
    "flicr": Flicr,
    "plb": Plb,
    "reps": Reps,
    "reps-fifo": RecycledFifo,
    "uet-oblivious": UetOblivious,
    "uet-bitmap": UetBitmap,
    "uet-mixed": UetMixed,
    FLOWBENDER: FlowBender,
}
"""By algorithm, the class of the steering of one flow, except for hermes; hosts.extend adds the classes of
plug-ins. The classes ignore SteeringConfig.algorithm.
"""


class SteeringFactory:
    """Makes the steering of each flow of a NIC, and shares the state of paths among flows."""

    def __init__(
        self, config: NicConfig, paths: Callable[[str], PathList] | None, rng: random.Random
    ) -> None:
        """Args:
        paths: the endpoint table (Spritz §III-C): the paths to a destination; None: no flow can be steered.
        rng: draws paths.
        """
        self._transport: str = config.transport
        self._nic_algorithm: str = config.steering.algorithm if config.steering else ""
        self._config: SteeringConfig = config.steering or SteeringConfig()
        self._keep_ns: int = self._config.keep_ns
        self._good_ns: int = self._config.good_ns
        self._small_bytes: int = self._config.small_bytes
        self._hermes: HermesNicConfig = config.hermes
        self._link_bps: int = config.link_rate_bps
        self._paths = paths
        self._rng = rng
        # state of paths, by _key: while flows use it
        self._used: dict[str, PathState] = {}
        # and after that, with the time when the last flow ended; the oldest first
        self._kept: dict[str, tuple[int, PathState]] = {}
        # state of Hermes, by destination and by place (hosts that are reached by the same paths)
        self._hermes_hosts: dict[str, HermesHost] = {}
        self._hermes_paths: dict[str, HermesPaths] = {}

    def algorithm(self, flow: FlowSpec) -> str:
        """The steering algorithm of a flow; "": none.

        Raises:
            ConfigError: the NIC has another transport than the algorithm needs, or no endpoint table.
        """
        algorithm: str = flow.steering or self._nic_algorithm
        if not algorithm:
            return ""
        needed = ALGORITHMS[algorithm]  # the transport that the algorithm needs
        if needed not in (ANY, self._transport):
            raise ConfigError(
                f"flow {flow.id}: steering {algorithm} needs transport {needed}, not {self._transport}"
            )
        if self._paths is None:
            raise ConfigError(f"flow {flow.id}: steering {algorithm} needs paths, but its NIC has none")
        return algorithm

    def start(self, now_ns: int, flow: FlowSpec, flow_hash: int) -> Steering | None:
        """The steering of a flow that starts now; None: the flow is not steered.

        Args:
            flow_hash: hash of the flow's 5-tuple.

        Raises:
            ConfigError: as in `algorithm`, or raised by the endpoint table.
        """
        algorithm = self.algorithm(flow)
        if not algorithm or self._paths is None:
            return None
        if algorithm == HERMES:
            return self._start_hermes(flow.dst, self._paths(flow.dst))
        key = self._key(algorithm, flow)
        state = self._shared_state(now_ns, key)
        paths = state.paths if state is not None else self._paths(flow.dst)
        if state is None and self._is_small(algorithm, flow):
            # the first path is the shortest
            weights = (self._config.min_bias_factor,) + (1.0,) * (len(paths.evs) - 1)
            paths = replace(paths, weights=weights)
        steering = MAKERS[algorithm](self._config, paths, flow_hash, self._rng)
        if self._keep_ns and isinstance(steering, Spritz):
            if state is not None:
                steering.share(state)
            self._used[key] = steering.state
            steering.state.flows += 1
        return steering

    def _shared_state(self, now_ns: int, key: str) -> PathState | None:
        """The state that flows with this key use, or that the last of them left; None: none, or stale."""
        if key not in self._kept:
            return self._used.get(key)
        ended_ns, state = self._kept.pop(key)
        if now_ns - ended_ns > self._keep_ns:
            return None
        if now_ns - ended_ns > self._good_ns:
            state.forget_good()
        return state

    def _is_small(self, algorithm: str, flow: FlowSpec) -> bool:
        """Whether the weights of a flow's paths depend on its size (SteeringConfig.small_bytes)."""
        return flow.bytes < self._small_bytes and algorithm in (SCOUT, SPRAY)

    def _key(self, algorithm: str, flow: FlowSpec) -> str:
        """Flows with the same key may share their state; those with other weights have another key."""
        return f"{algorithm} {self._is_small(algorithm, flow)} {flow.dst}"

    def _start_hermes(self, dst: str, paths: PathList) -> Hermes:
        """The steering of a new flow by Hermes; flows share the state of paths."""
        host = self._hermes_hosts.get(dst)
        if host is None:
            place = paths.place or dst
            shared = self._hermes_paths.get(place)
            if shared is None:
                shared = self._hermes_paths[place] = HermesPaths(self._hermes, paths)
            host = self._hermes_hosts[dst] = HermesHost(self._hermes, shared, len(paths.evs))
        return Hermes(self._hermes, paths, host, self._link_bps, self._rng)

    def finish(self, now_ns: int, flow: FlowSpec, steering: Steering) -> None:
        """Keeps the state of paths for a later flow, if the flow that has ended was the last to use it."""
        if not self._keep_ns or not isinstance(steering, Spritz):
            return
        state = steering.state
        state.flows -= 1
        if state.flows:
            return
        key = self._key(self.algorithm(flow), flow)
        del self._used[key]
        self._kept[key] = (now_ns, state)
        stale: list[str] = []
        for kept_key, (ended_ns, _) in self._kept.items():
            if now_ns - ended_ns <= self._keep_ns:
                break
            stale.append(kept_key)
        for kept_key in stale:
            del self._kept[kept_key]
