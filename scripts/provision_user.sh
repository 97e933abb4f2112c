#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copies the project into the home folder of a virtual machine's user and sets it up there.
# Running it again copies what has changed. The Vagrantfile runs it after provision_root.sh.
# The project is copied because Python environments do not work in every kind of shared folder.
# Usage: scripts/provision_user.sh [FROM [TO]]        (default: /vagrant ~/tailrace)
set -euo pipefail

FROM=${1:-/vagrant}
TO=${2:-$HOME/tailrace}

say() { echo "provision: $*" >&2; }

[ -f "$FROM/Makefile" ] || { say "$FROM contains no Makefile; expected the project there"; exit 1; }

mkdir -p "$TO"
# Build output is not copied.
rsync --archive --delete --exclude=/.venv/ --exclude=/.venv-ptf/ --exclude=/build/ --exclude=/out/ --exclude=/.vagrant/ \
    --exclude=__pycache__/ --exclude='.*_cache/' --exclude='*.egg-info/' "$FROM/" "$TO/"

# Root installs packages; the files that it leaves in the project (its log) are then given to the user.
if [ "$(id -u)" -ne 0 ]; then
    sudo -n "$TO/scripts/setup.sh" packages
    sudo -n chown -R "$(id -u):$(id -g)" "$TO"
fi
say "setting up $TO"
make --no-print-directory -C "$TO" setup
say "done: cd $TO && sudo make run"
