#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copies the project into the home folder of a virtual machine's user and sets it up there.
# Running it again copies what has changed. The Vagrantfile runs it after provision_root.sh.
# A copy, because environments cannot live in every kind of shared folder.
# Usage: scripts/provision_user.sh [FROM [TO]]        (default: /vagrant ~/tailrace)
set -euo pipefail

FROM=${1:-/vagrant}
TO=${2:-$HOME/tailrace}

say() { echo "provision: $*" >&2; }

[ -f "$FROM/Makefile" ] || { say "$FROM holds no Makefile; expected the project there"; exit 1; }

mkdir -p "$TO"
# What was made on one side stays on that side.
rsync --archive --delete --exclude=/.venv/ --exclude=/.venv-ptf/ --exclude=/build/ --exclude=/out/ --exclude=/.vagrant/ \
    --exclude=__pycache__/ --exclude='.*_cache/' --exclude='*.egg-info/' "$FROM/" "$TO/"

for version in 3.11 3.12 3.10; do
    if command -v "python$version" >/dev/null; then
        say "setting up $TO with python$version"
        make --no-print-directory -C "$TO" setup PYTHON="python$version"
        say "done: cd $TO && sudo make run"
        exit 0
    fi
done
say "no Python from 3.10 to 3.12; run provision_root.sh first"
exit 1
