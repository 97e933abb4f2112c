# SPDX-License-Identifier: Apache-2.0
"""The fabric in Mininet: hosts in namespaces, switch processes, veth pairs."""

from __future__ import annotations

import shlex
import socket
from collections.abc import Callable

from fabric_plan import FABRIC_MTU, HOST_MTU_BYTES, FabricPlan, SwitchPlan, host_interface
from fabric_process import FabricProcess, run
from fabric_report import FabricError, InputError
from fabric_sandbox import claim_nic_ports

from tailrace.emulation.target import add_mininet_path
from tailrace.topology import GATEWAY_MAC
from tailrace.topology import Host as HostData

add_mininet_path()
try:
    from mininet.net import Mininet
    from mininet.node import Host, Switch
except ImportError as error:
    raise InputError(f"Mininet cannot be imported ({error}); install Debian's package mininet") from error

GATEWAY_IP = "169.254.0.1"
"""The next hop of all hosts. No node has this address: hosts need only its MAC address, GATEWAY_MAC."""

_IPV6_OFF = "/proc/sys/net/ipv6/conf/all/disable_ipv6"
_UP_COMMANDS = 3
"""The first commands of `_configure` start the interfaces."""

_OFFLOADS = ("rx", "tx", "sg", "tso", "gso", "gro")
Starter = Callable[[SwitchPlan], FabricProcess]


class P4Switch(Switch):
    """A Mininet switch that runs one P4 switch process on its interfaces."""

    def __init__(self, name: str, plan: SwitchPlan, starter: Starter, **params: object) -> None:
        """`starter` starts the process of `plan` when Mininet starts the switch."""
        super().__init__(name, dpid=f"{plan.device_id:x}", **{**params, "inNamespace": False})
        self.plan = plan
        self.process: FabricProcess | None = None
        self._starter = starter

    def start(self, _controllers: object) -> None:
        """Starts the process; it does not serve yet."""
        self.process = self._starter(self.plan)

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803 - Mininet's name
        """Stops the process."""
        if self.process is not None:
            self.process.end()
        super().stop(deleteIntfs)


class FabricNet:
    """The running fabric. It is not taken down link by link: it disappears with its namespaces."""

    def __init__(self, plan: FabricPlan, starter: Starter, *, silent: bool = False) -> None:
        """Makes hosts, switches and links, and starts the switch processes.

        Args:
            silent: the hosts' kernel stacks have no address, so that they answer no frame.

        Raises:
            FabricError: an interface cannot be made, or a switch cannot be started.
        """
        # skips Mininet's initialisation, which raises limits of the whole machine that are not needed
        Mininet.inited = True
        self.plan = plan
        self.mininet = Mininet(topo=None, controller=None, build=False)
        self._claimed: list[socket.socket] = []
        for host in plan.topology.hosts:
            self.mininet.addHost(host.name, cls=Host)
        for switch in plan.switches:
            self.mininet.addSwitch(switch.name, cls=P4Switch, plan=switch, starter=starter)
        self._add_links()
        for host in plan.topology.hosts:
            self._configure(host, silent=silent)
        self.mininet.built = True
        self.mininet.start()

    def _add_links(self) -> None:
        for link in self.plan.links:
            self.mininet.addLink(
                link.a.node,
                link.b.node,
                port1=link.a.port,
                port2=link.b.port,
                intfName1=link.a.interface,
                intfName2=link.b.interface,
                addr1=link.a.mac,
                addr2=link.b.mac,
            )
        names = [port.interface for switch in self.plan.switches for port in switch.ports]
        for name in names:
            run(_offloads_off(name))
        run(["ip", "-batch", "-"], "".join(f"link set dev {name} mtu {FABRIC_MTU} up\n" for name in names))

    def _configure(self, host: HostData, *, silent: bool) -> None:
        """Gives a host's kernel stack an address and a default route, unless it is to be silent."""
        node, name = self.mininet[host.name], host_interface(host.name)
        mtu = ["mtu", str(HOST_MTU_BYTES)]
        commands = [
            ["ip", "link", "set", "dev", "lo", "up"],
            _offloads_off(name),
            ["ip", "link", "set", "dev", name, "mtu", str(FABRIC_MTU), "up"],
            ["ip", "address", "add", f"{host.ip}/32", "dev", name],
            ["ip", "neighbour", "add", GATEWAY_IP, "lladdr", GATEWAY_MAC, "dev", name, "nud", "permanent"],
            # the MTU of the interface is for the NIC's frames, that of the route for ping and iperf
            ["ip", "route", "add", "default", "via", GATEWAY_IP, "dev", name, "onlink", *mtu],
        ]
        commands = commands[:_UP_COMMANDS] if silent else commands
        script = f"if test -e {_IPV6_OFF}; then echo 1 > {_IPV6_OFF}; fi"
        steps = [script, *(f"{shlex.join(arguments)} >/dev/null" for arguments in commands), "echo done"]
        output = node.cmd(" && ".join(steps))
        if output.split() != ["done"]:
            raise FabricError(f"cannot configure {host.name}: {' '.join(output.split())}")
        # Mininet's prompt replaces host names with these addresses
        interface = node.intf(name)
        interface.ip, interface.prefixLen = host.ip, "32"
        self._claimed += claim_nic_ports(node.pid)

    @property
    def switches(self) -> dict[str, tuple[SwitchPlan, FabricProcess]]:
        return {plan.name: (plan, self.mininet[plan.name].process) for plan in self.plan.switches}

    def pid(self, node: str) -> int:
        """The id of a process in the network namespace of a node."""
        pid: int = self.mininet[node].pid
        return pid


def _offloads_off(name: str) -> list[str]:
    return ["ethtool", "-K", name, *(argument for offload in _OFFLOADS for argument in (offload, "off"))]
