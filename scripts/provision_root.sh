#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prepares a Debian or Ubuntu machine for `make run` on BMv2: installs Mininet, p4c and BMv2; setup.sh installs the rest.
# p4lang's packages have moved and have been broken before. So several repositories are tried in order, and the installed
# switch is started once: it must answer over P4Runtime. Without such a switch, `make run` uses the native one.
# Run as root; running it again brings everything up to date. The Vagrantfile runs it in the virtual machine.
# Environment: P4LANG_PREFIX    your build of BMv2: a folder with bin/simple_switch_grpc, used instead of packages
#              P4LANG_PACKAGES  .deb files, or folders that contain some, installed instead of a repository's packages
#              P4LANG_PROJECTS  projects on build.opensuse.org (default: home:p4lang:latest p4lang home:p4lang)
#              P4LANG_URLS      package repositories instead of these projects, such as a mirror
# Lists are separated by spaces.
set -euo pipefail

PROJECTS=${P4LANG_PROJECTS:-home:p4lang:latest p4lang home:p4lang}
KEYRING=/etc/apt/keyrings/p4lang.gpg
SOURCES=/etc/apt/sources.list.d/p4lang.list
LINKS=/usr/local/bin
export DEBIAN_FRONTEND=noninteractive

say() { echo "provision: $*" >&2; }
die() { say "$*"; exit 1; }

[ "$(id -u)" -eq 0 ] || die "run me as root: sudo $0"
command -v apt-get >/dev/null || die "apt-get not found; this is for Debian and Ubuntu"

# Output of apt and of the tried switches; shown if nothing else explains a failure.
SCRATCH=$(mktemp -d)
LOG=$SCRATCH/log
trap 'rm -rf "$SCRATCH"' EXIT

# install PACKAGE...: without recommended packages (Mininet would bring Open vSwitch and its daemons).
install() { apt-get install -y -qq --no-install-recommends "$@" >"$LOG" 2>&1; }

required() { install "$@" || { tail -n 5 "$LOG" >&2; die "apt-get could not install $*"; }; }

# The name of this distribution on build.opensuse.org: Debian_12, xUbuntu_22.04.
distribution() {
    # shellcheck source=/dev/null
    . /etc/os-release
    case $ID in
        debian) echo "Debian_$VERSION_ID" ;;
        ubuntu) echo "xUbuntu_$VERSION_ID" ;;
        *) echo "$ID" ;;
    esac
}

repositories() {
    local project
    [ -z "${P4LANG_URLS:-}" ] || { tr ' ' '\n' <<<"$P4LANG_URLS"; return; }
    for project in $PROJECTS; do
        echo "https://download.opensuse.org/repositories/${project//:/:\/}/$(distribution)"
    done
}

# Asks a P4Runtime server for its capabilities with an empty message: every server since P4Runtime 1.3 answers, with any
# program.
capabilities() { # PORT
    printf '\0\0\0\0\0' | curl -sS --http2-prior-knowledge --noproxy '*' --max-time 2 --data-binary @- \
        -H 'content-type: application/grpc' -H 'te: trailers' \
        "http://127.0.0.1:$1/p4.v1.P4Runtime/Capabilities" 2>/dev/null | tr -d '\0' | grep -aEo '1\.[0-9]+\.[0-9]+'
}

# Whether the simple_switch_grpc on PATH starts and serves P4Runtime.
serves() {
    local port=$((20000 + RANDOM % 10000)) pid answer=""
    command -v simple_switch_grpc >/dev/null || { echo "there is no simple_switch_grpc" >"$LOG"; return 1; }
    simple_switch_grpc --no-p4 -- --grpc-server-addr "127.0.0.1:$port" >"$LOG" 2>&1 &
    pid=$!
    for _ in $(seq 50); do
        sleep 0.2
        answer=$(capabilities "$port") && break
        kill -0 "$pid" 2>/dev/null || break
    done
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    hash -r
    [ -n "$answer" ]
}

# The last line of the log, shortened.
reason() { tail -n 1 "$LOG" | tr -cd '[:print:]' | cut -c 1-160; }

# Adds one repository with its key; apt accepts this key for this repository only.
add_repository() { # URL
    rm -f "$SCRATCH/key"
    curl -fsSL --retry 2 --connect-timeout 20 --max-time 60 --max-filesize 1000000 -o "$SCRATCH/key" "$1/Release.key" 2>"$LOG" || return 1
    mkdir -p "$(dirname "$KEYRING")"
    gpg --batch --yes --dearmor -o "$KEYRING" "$SCRATCH/key" 2>"$LOG" || return 1
    echo "deb [signed-by=$KEYRING] $1/ /" >"$SOURCES"
    apt-get update -qq >"$LOG" 2>&1
}

# Removes the packages of a repository, so that they cannot affect the next one.
remove_packages() {
    local installed
    mapfile -t installed < <(dpkg-query -W -f '${Package} ${Status}\n' 'p4lang-*' 2>/dev/null | awk '/ installed$/ {print $1}')
    [ ${#installed[@]} -eq 0 ] || apt-get purge -y -qq "${installed[@]}" >"$LOG" 2>&1 || true
    rm -f "$SOURCES" "$KEYRING"
}

# The switch comes first: it is enough to run, as our programs are compiled already; p4c is for the user's programs.
from_repository() { # URL
    add_repository "$1" && install p4lang-bmv2 && serves || return 1
    install p4lang-p4c || say "no p4c in $1: our programs are compiled already, but yours need it"
}

# The .deb files that P4LANG_PACKAGES names, one per line.
packages() {
    local name
    for name in ${P4LANG_PACKAGES:-}; do
        if [ -d "$name" ]; then
            find "$(realpath "$name")" -maxdepth 1 -name '*.deb'
        else
            realpath "$name"
        fi
    done
}

# Checks that the files named in the environment exist, before anything is installed.
check_named() {
    local files file
    [ -z "${P4LANG_PREFIX:-}" ] || [ -x "$P4LANG_PREFIX/bin/simple_switch_grpc" ] ||
        die "P4LANG_PREFIX: $P4LANG_PREFIX/bin contains no simple_switch_grpc"
    [ -n "${P4LANG_PACKAGES:-}" ] || return 0
    mapfile -t files < <(packages)
    [ ${#files[@]} -gt 0 ] || die "P4LANG_PACKAGES: no .deb file in $P4LANG_PACKAGES"
    for file in "${files[@]}"; do
        [ -f "$file" ] || die "P4LANG_PACKAGES: $file is no file; expected .deb files or folders that contain some"
    done
}

from_packages() {
    local files
    mapfile -t files < <(packages)
    required "${files[@]}"
    serves || die "P4LANG_PACKAGES: simple_switch_grpc does not serve P4Runtime: $(reason)"
}

from_prefix() {
    local bin name
    bin=$(realpath "$P4LANG_PREFIX/bin")
    for name in simple_switch_grpc simple_switch p4c-bm2-ss p4c; do
        [ ! -x "$bin/$name" ] || ln -sfn "$bin/$name" "$LINKS/$name"
    done
    serves || die "P4LANG_PREFIX: simple_switch_grpc does not serve P4Runtime: $(reason)"
}

install_bmv2() {
    local url
    if [ -n "${P4LANG_PREFIX:-}" ]; then
        from_prefix
    elif [ -n "${P4LANG_PACKAGES:-}" ]; then
        from_packages
    elif [ ! -e "$SOURCES" ] && serves; then
        say "BMv2 is installed already"
    else
        for url in $(repositories); do
            say "trying p4c and BMv2 from $url"
            remove_packages
            ! from_repository "$url" || return 0
            say "no working BMv2 from $url: $(reason)"
        done
        remove_packages
        apt-get update -qq >"$LOG" 2>&1 || true
        return 1
    fi
}

check_named
say "[1/2] packages of the distribution"
apt-get update -qq >"$LOG" 2>&1 || { tail -n 5 "$LOG" >&2; die "apt-get update failed"; }
required ca-certificates curl gnupg rsync git make sudo mininet iputils-ping
say "[2/2] p4c and BMv2"
if install_bmv2; then
    say "done: $(command -v simple_switch_grpc) serves P4Runtime, Mininet $(mn --version 2>&1 | tail -n 1)"
else
    say "done, without BMv2: \`make run\` uses the native switch, which runs the same compiled programs"
fi
