#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Debian or Ubuntu machine ready for `make run` on BMv2: Mininet, p4lang's packages, and what setup.sh needs.
# Run as root; running it again brings everything up to date. The Vagrantfile runs it in the virtual machine.
# Environment: P4LANG_PROJECT  project on build.opensuse.org to take p4c and BMv2 from (default home:p4lang)
#              P4LANG_URL      its package repository for this distribution, where a mirror is to be used
set -euo pipefail

PROJECT=${P4LANG_PROJECT:-home:p4lang}
KEYRING=/etc/apt/keyrings/p4lang.gpg
SOURCES=/etc/apt/sources.list.d/p4lang.list
export DEBIAN_FRONTEND=noninteractive

say() { echo "provision: $*" >&2; }
die() { say "$*"; exit 1; }

[ "$(id -u)" -eq 0 ] || die "run me as root: sudo $0"
command -v apt-get >/dev/null || die "apt-get not found; this is for Debian and Ubuntu"

# install PACKAGE...: without what is only recommended (Mininet would bring Open vSwitch and its daemons).
install() { apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }

# The Python to use, from this distribution; Mininet 2.3 is happiest before 3.12, which has no distutils.
python_packages() {
    local version
    for version in 3.11 3.12 3.10; do
        if apt-cache show "python$version-venv" >/dev/null 2>&1; then
            echo "python$version python$version-venv python$version-dev"
            return
        fi
    done
    die "this distribution has no Python from 3.10 to 3.12"
}

# How build.opensuse.org calls this distribution: Debian_12, xUbuntu_22.04.
repository() {
    # shellcheck source=/dev/null
    . /etc/os-release
    case $ID in
        debian) echo "Debian_$VERSION_ID" ;;
        ubuntu) echo "xUbuntu_$VERSION_ID" ;;
        *) die "no p4lang packages for $ID" ;;
    esac
}

# Adds p4lang's package repository with its own key, for its own packages only.
add_p4lang() {
    local base key
    base=${P4LANG_URL:-https://download.opensuse.org/repositories/${PROJECT//:/:\/}/$(repository)}
    key=$(mktemp)
    if ! curl -fsSL --retry 3 -o "$key" "$base/Release.key"; then
        rm -f "$key"
        die "cannot fetch $base/Release.key: no p4lang packages for this distribution, or no network"
    fi
    mkdir -p "$(dirname "$KEYRING")"
    gpg --batch --yes --dearmor -o "$KEYRING" "$key"
    rm -f "$key"
    echo "deb [signed-by=$KEYRING] $base/ /" >"$SOURCES"
}

say "installing packages of the distribution"
apt-get update -qq
install ca-certificates curl gnupg rsync git make gcc libc6-dev iproute2 ethtool procps shellcheck mininet iputils-ping
read -r -a python <<<"$(python_packages)"
install "${python[@]}"

if command -v simple_switch_grpc >/dev/null && command -v p4c-bm2-ss >/dev/null && [ ! -e "$SOURCES" ]; then
    say "p4c and BMv2 are here already: $(command -v simple_switch_grpc)"
else
    say "installing p4c and BMv2 from $PROJECT"
    add_p4lang
    apt-get update -qq
    install p4lang-p4c p4lang-bmv2
fi
command -v simple_switch_grpc >/dev/null || die "the package p4lang-bmv2 brought no simple_switch_grpc"
say "done: $(simple_switch_grpc --version 2>/dev/null | tail -n 1), Mininet $(mn --version 2>&1 | tail -n 1)"
