#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the machine ready: Debian packages, .venv (our code) and .venv-ptf (packet tests, p4runtime-shell).
# Usage: scripts/setup.sh [packages] [main] [ptf] [browser]     (default: main and ptf; packages: Debian's alone;
#        browser: for the test of the report)
# Environment: PYTHON  the interpreter to build the environments with (default python3)
# A second run takes well under a second: each environment keeps a stamp with the hash of what it was made from.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}

say() { echo "setup: $*" >&2; }
die() { say "$*"; exit 1; }

have_python_headers() {
    "$PYTHON" - <<'PY' >/dev/null 2>&1
import pathlib, sys, sysconfig
sys.exit(0 if pathlib.Path(sysconfig.get_path("include"), "Python.h").exists() else 1)
PY
}

have_venv() { "$PYTHON" -c 'import ensurepip, venv' >/dev/null 2>&1; }

have_c_library() { echo '#include <stdio.h>' | cc -x c -fsyntax-only - >/dev/null 2>&1; }

# Mininet is Debian's package: the one on PyPI brings no mnexec. Its Python part is one folder of pure Python.
MININET=/usr/lib/python3/dist-packages/mininet

# What only `make run` in real time needs; without it everything else works, in virtual time.
wanted_packages() {
    [ -d "$MININET" ] || echo mininet
    command -v ping >/dev/null || echo iputils-ping
}

# Prints the Debian packages this machine lacks, found by what they provide, not by name:
# a compiler or interpreter from elsewhere serves as well.
missing_packages() {
    command -v "$PYTHON" >/dev/null || echo python3
    have_venv || echo python3-venv
    have_python_headers || echo python3-dev
    command -v make >/dev/null || echo make
    command -v cc >/dev/null || echo gcc
    have_c_library || echo libc6-dev
    command -v ip >/dev/null || [ -x /usr/sbin/ip ] || echo iproute2
    command -v ethtool >/dev/null || [ -x /usr/sbin/ethtool ] || echo ethtool
    command -v shellcheck >/dev/null || echo shellcheck
}

install_packages() {
    local missing
    mapfile -t missing < <(missing_packages)
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        die "please install: ${missing[*]}   (on Debian and Ubuntu: sudo apt-get install ${missing[*]})"
    fi
    say "installing ${missing[*]}"
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
    mapfile -t missing < <(missing_packages)
    [ ${#missing[@]} -eq 0 ] || die "still missing after apt-get install: ${missing[*]}"
}

install_wanted() {
    local wanted
    mapfile -t wanted < <(wanted_packages)
    [ ${#wanted[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        say "without ${wanted[*]} runs are in virtual time (on Debian and Ubuntu: sudo apt-get install ${wanted[*]})"
        return 0
    fi
    say "installing ${wanted[*]}"
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${wanted[@]}" >/dev/null ||
        say "could not install ${wanted[*]}; runs are in virtual time"
}

# The environment sees Debian's Mininet, and nothing else of Debian's Python packages.
link_mininet() {
    local site
    [ -d "$MININET" ] || return 0
    site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    ln -sfn "$MININET" "$site/mininet"
}

check_python() {
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
        die "$PYTHON is $("$PYTHON" -V 2>&1); Python 3.10 or newer is needed (set PYTHON=...)"
}

# make_venv DIR FILE PIP_ARGUMENT...: an environment made from FILE, unless it is there already.
make_venv() {
    local dir=$1 file=$2 stamp
    shift 2
    stamp=$({ "$PYTHON" -c 'import sys; print(sys.version, sys.base_prefix)'; pwd; cat "$file" scripts/setup.sh; } |
        sha256sum | cut -d' ' -f1)
    if [ -f "$dir/.stamp" ] && [ "$(cat "$dir/.stamp")" = "$stamp" ]; then
        return 0
    fi
    say "making $dir with $("$PYTHON" -V)"
    "$PYTHON" -m venv --clear "$dir"
    "$dir/bin/python" -m pip --disable-pip-version-check install --quiet --upgrade pip wheel 2>&1 | quieten
    "$dir/bin/python" -m pip --disable-pip-version-check install --quiet --quiet "$@" 2>&1 | quieten
    echo "$stamp" >"$dir/.stamp"
}

# The NICs' algorithms, compiled by mypyc into the user's cache; without them the same ones run interpreted.
compile_nics() {
    .venv/bin/python -m tailrace.hosts.build >/dev/null ||
        say "the NICs' algorithms stay interpreted, which is slower and otherwise the same"
}

# Ubuntu's browsers are snaps, which a container cannot install: there the test of the report says that it is skipped.
install_browser() {
    local found
    for found in chromium chromium-browser google-chrome; do
        ! command -v "$found" >/dev/null || return 0
    done
    if [ "$(id -u)" -ne 0 ] || ! grep -q '^ID=debian' /etc/os-release; then
        say "no browser to test the report in (on Debian: sudo apt-get install chromium)"
        return 0
    fi
    say "installing chromium"
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null ||
        say "could not install chromium; the report is not tested in a browser"
}

# Warnings of pip about the places it looks in are no news to a user.
quieten() { grep -v '^WARNING: Location' >&2 || true; }

install_packages
install_wanted
check_python
[ $# -gt 0 ] || set -- main ptf
for name in "$@"; do
    case $name in
        packages) ;; # they come first, whatever is asked for
        main) make_venv .venv pyproject.toml --editable '.[dev]' && link_mininet && compile_nics ;;
        ptf) make_venv .venv-ptf requirements/ptf.txt --requirement requirements/ptf.txt ;;
        browser) install_browser ;;
        *) die "unknown part '$name'; expected packages, main, ptf or browser" ;;
    esac
done
