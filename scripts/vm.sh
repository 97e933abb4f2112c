#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts the virtual machine of the Vagrantfile, or brings a running one up to date.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "vm: $*" >&2; }

command -v vagrant >/dev/null || { say "please install Vagrant and VirtualBox or libvirt, see Vagrantfile"; exit 1; }
# A folder that is shared by copying (libvirt) is copied when the machine starts; copy it now if the machine runs.
vagrant rsync >/dev/null 2>&1 || true
vagrant up --provision
say "it is ready: vagrant ssh, then: cd tailrace && sudo make run"
