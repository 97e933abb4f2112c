# SPDX-License-Identifier: Apache-2.0
"""The fabric in Mininet: hosts in namespaces, switch processes, veth pairs."""

from __future__ import annotations

import socket
from collections.abc import Callable

from fabric_plan import FABRIC_MTU, HOST_MTU_BYTES, FabricPlan, SwitchPlan, host_interface
from fabric_process import FabricProcess, run
from fabric_report import InputError
from fabric_sandbox import claim_nic_ports, inside

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
"""The next hop of hosts. No node has this address: hosts need only its MAC address, GATEWAY_MAC."""

_IPV6_OFF = "/proc/sys/net/ipv6/conf/all/disable_ipv6"
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

    def __init__(self, plan: FabricPlan, starter: Starter, *, foreign: bool = False) -> None:
        """Makes hosts, switches and links, and starts the switch processes.

        Args:
            foreign: hosts have the topology's subnets, routes and ARP entries, if it has any.

        Raises:
            FabricError: an interface cannot be made, or a switch cannot be started.
        """
        # skips Mininet's initialisation, which raises limits of the whole machine that are not needed
        Mininet.inited = True
        self.plan = plan
        self.mininet = Mininet(topo=None, controller=None, build=False)
        self._claimed: list[socket.socket] = []
        self._foreign = foreign
        for host in plan.topology.hosts:
            self.mininet.addHost(host.name, cls=Host)
        for switch in plan.switches:
            self.mininet.addSwitch(switch.name, cls=P4Switch, plan=switch, starter=starter)
        self._add_links()
        for host in plan.topology.hosts:
            self._configure(host)
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

    def _configure(self, host: HostData) -> None:
        """Starts a host's interfaces, and gives its kernel stack an address."""
        node, name = self.mininet[host.name], host_interface(host.name)
        node.cmd(f"if test -e {_IPV6_OFF}; then echo 1 > {_IPV6_OFF}; fi")
        with inside(node.pid):
            run(_offloads_off(name))
            links = f"link set dev lo up\nlink set dev {name} mtu {FABRIC_MTU} up\n"
            run(["ip", "-batch", "-"], links + _addresses(host, foreign=self._foreign))
        # Mininet's prompt replaces host names with these addresses
        interface = node.intf(name)
        interface.ip, interface.prefixLen = host.ip, "32"
        self._claimed += claim_nic_ports(node.pid)

    def silence(self, *, silent: bool = True) -> None:
        """Takes the addresses from hosts' kernel stacks, which then answer no frame, or gives them back."""
        for host in self.plan.topology.hosts:
            flush = f"address flush dev {host_interface(host.name)}\n"
            with inside(self.pid(host.name)):
                run(["ip", "-batch", "-"], flush if silent else _addresses(host, foreign=self._foreign))

    @property
    def switches(self) -> dict[str, tuple[SwitchPlan, FabricProcess]]:
        return {plan.name: (plan, self.mininet[plan.name].process) for plan in self.plan.switches}

    def pid(self, node: str) -> int:
        """The id of a process in the network namespace of a node."""
        pid: int = self.mininet[node].pid
        return pid


def _addresses(host: HostData, *, foreign: bool) -> str:
    """Commands of ip(8) that give a host's kernel stack an address, routes and ARP entries."""
    name = host_interface(host.name)
    routes, arp = host.routes, host.arp
    if not foreign or not routes:
        routes, arp = ((f"{host.ip}/32", ""), ("0.0.0.0/0", GATEWAY_IP)), ((GATEWAY_IP, GATEWAY_MAC),)
    length = routes[0][0].partition("/")[2]
    commands = [f"address add {host.ip}/{length} dev {name}"]
    commands += [f"neighbour replace {ip} lladdr {mac} dev {name} nud permanent" for ip, mac in arp]
    # the MTU of the interface is for the NIC's frames, that of routes for ping and iperf; Scapy takes the
    # source address of packets from the route
    options = f"dev {name} src {host.ip} mtu {HOST_MTU_BYTES}"
    for prefix, gateway in routes:
        commands.append(f"route replace {prefix} {f'via {gateway} onlink' if gateway else ''} {options}")
    return "".join(f"{command}\n" for command in commands)


def _offloads_off(name: str) -> list[str]:
    return ["ethtool", "-K", name, *(argument for offload in _OFFLOADS for argument in (offload, "off"))]
