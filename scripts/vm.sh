#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts the virtual machine of the Vagrantfile, or brings a running one up to date.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "vm: $*" >&2; }

command -v vagrant >/dev/null || { say "please install Vagrant and VirtualBox or libvirt, see Vagrantfile"; exit 1; }
# libvirt shares a folder by copying it when the machine starts; if the machine runs, copy it now.
vagrant rsync >/dev/null 2>&1 || true
vagrant up --provision
say "the machine is ready: vagrant ssh, then: cd tailrace && sudo make run"
