# SPDX-License-Identifier: Apache-2.0
"""Hosts that play RDMA NICs: packets, transports, Flowcut on the NIC, and a real-time driver.

Everything but `hosts.driver` is pure: no I/O, no clock, no global random numbers. Time is an argument in
ns, and whoever owns the wire pulls frames out of `hosts.nic.Nic` and hands arriving ones in.
"""
