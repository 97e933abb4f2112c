#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the project needs, step by step, and prints how long each step took.
# Usage: scripts/setup.sh [PART...]        (default: test ptf)
#   packages only Debian packages, which are also part of every other PART
#   run      also .venv with what runs need: `make run`
#   test     also what tests and lint need, and the NICs' algorithms compiled
#   ptf      .venv-ptf: packet tests, p4runtime-shell
#   browser  a browser for the test of the report
#   fuzz     clang, whose coverage guides `make fuzz`
# Environment: PYTHON  the interpreter to build the environments with (default python3); pip's own settings apply
# A second run takes well under a second: each environment has a stamp, the hash of the files that it was made from.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}
LOG=build/setup.log

say() { echo "setup: $*" >&2; }
die() { say "$*"; exit 1; }

# ---- steps: all are planned before the first one begins ----

titles=()
commands=()

# add TITLE COMMAND...: one more step.
add() {
    titles+=("$1")
    commands+=("${*:2}")
}

take_steps() {
    local number begin before
    [ ${#titles[@]} -gt 0 ] || return 0
    mkdir -p "$(dirname "$LOG")"
    : >"$LOG"
    for number in "${!titles[@]}"; do
        printf 'setup: [%d/%d] %s … ' $((number + 1)) ${#titles[@]} "${titles[number]}" >&2
        begin=$SECONDS
        before=$(wc -l <"$LOG")
        # the commands are ours, and their arguments have no spaces
        # shellcheck disable=SC2086
        if ! ${commands[number]} >>"$LOG" 2>&1; then
            echo failed >&2
            die "$(reason $((before + 1))) (all of it: $LOG)"
        fi
        echo "$((SECONDS - begin)) s" >&2
    done
}

# reason LINE: the last error in the log from this line on, or the last line.
reason() {
    local output
    output=$(tail -n "+$1" "$LOG" | grep .) || output="no output"
    { grep -iE '^(E|error|fatal)[: ]' <<<"$output" || echo "$output"; } | tail -n 1
}

# ---- Debian packages: detected by what they provide, not by name ----

have_python_headers() {
    "$PYTHON" - <<'PY' >/dev/null 2>&1
import pathlib, sys, sysconfig
sys.exit(0 if pathlib.Path(sysconfig.get_path("include"), "Python.h").exists() else 1)
PY
}

have_venv() { "$PYTHON" -c 'import ensurepip, venv' >/dev/null 2>&1; }

have_c_library() { echo '#include <stdio.h>' | cc -x c -fsyntax-only - >/dev/null 2>&1; }

have_program() { command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ]; }

# Packages without which nothing runs: the switch is compiled on the user's machine.
needed_packages() {
    command -v "$PYTHON" >/dev/null || echo python3
    have_venv || echo python3-venv
    have_python_headers || echo python3-dev
    have_program make || echo make
    command -v cc >/dev/null || echo gcc
    have_c_library || echo libc6-dev
}

# Packages that only runs in real time need; without them everything works in virtual time.
mininet_packages() {
    have_program mnexec || echo mininet
    have_program ip || echo iproute2
    have_program ethtool || echo ethtool
    have_program ping || echo iputils-ping
}

can_install() { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; }

plan_packages() {
    local needed wanted
    mapfile -t needed < <(needed_packages)
    mapfile -t wanted < <(mininet_packages)
    if can_install; then
        [ ${#needed[@]} -eq 0 ] || add "Debian packages: ${needed[*]}" install_needed "${needed[@]}"
        [ ${#wanted[@]} -eq 0 ] || add "Debian packages: ${wanted[*]}" install_if_possible "${wanted[@]}"
        return 0
    fi
    [ ${#needed[@]} -eq 0 ] ||
        die "please install: ${needed[*]}   (on Debian and Ubuntu: sudo apt-get install ${needed[*]})"
    [ ${#wanted[@]} -eq 0 ] ||
        say "runs are in virtual time without ${wanted[*]} (on Debian and Ubuntu: sudo apt-get install ${wanted[*]})"
}

lists_updated=
install() {
    [ -n "$lists_updated" ] || apt-get update -qq || return
    lists_updated=yes
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

install_needed() {
    local missing
    install "$@" || return
    mapfile -t missing < <(needed_packages)
    [ ${#missing[@]} -eq 0 ] || { echo "error: still missing after apt-get install: ${missing[*]}"; return 1; }
}

failed=()
install_if_possible() { install "$@" || failed+=("$@"); }

# ---- Python environments ----

check_python() {
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
        { echo "error: $PYTHON is $("$PYTHON" -V 2>&1); Python 3.10 or newer is needed (set PYTHON=...)"; return 1; }
}

# stamp FILE: the stamp of an environment that is made from FILE.
stamp() {
    { "$PYTHON" -c 'import sys; print(sys.version, sys.base_prefix)'; pwd; cat "$1" scripts/setup.sh; } 2>&1 |
        sha256sum | cut -d' ' -f1
}

# is_made DIR FILE PART...: whether DIR was made from the present FILE for one of these parts.
is_made() {
    local part made
    made=$(cat "$1/.stamp" 2>/dev/null) || return 1
    for part in "${@:3}"; do
        [ "$made" != "$(stamp "$2") $part" ] || return 0
    done
    return 1
}

# A link leads to the environment of another tree, which must not be cleared.
no_link() { [ ! -L "$1" ] || { echo "error: $1 is a link to $(readlink "$1"), which would be emptied; remove it"; return 1; }; }

new_environment() { check_python && no_link "$1" && "$PYTHON" -m venv --clear "$1"; }

# fill DIR FILE PART PIP_ARGUMENT...: without compiling; Python compiles the few modules that are imported.
fill() {
    "$1/bin/python" -m pip --disable-pip-version-check install --quiet --no-compile "${@:4}" &&
        echo "$(stamp "$2") $3" >"$1/.stamp"
}

# Compiles the NICs' algorithms with mypyc into the user's cache; otherwise the same code runs interpreted.
compile_nics() {
    .venv/bin/python -m tailrace.hosts.build ||
        echo "the NICs' algorithms stay interpreted, which is slower and otherwise the same"
}

plan_run() {
    is_made .venv pyproject.toml run test && return 0
    add "environment .venv with $PYTHON" new_environment .venv
    add "what runs need, from the package index" fill .venv pyproject.toml run --editable '.[intervals]'
}

plan_test() {
    ! can_install || have_program shellcheck || add "Debian packages: shellcheck" install_if_possible shellcheck
    is_made .venv pyproject.toml test && return 0
    is_made .venv pyproject.toml run || add "environment .venv with $PYTHON" new_environment .venv
    add "what runs, tests and lint need, from the package index" fill .venv pyproject.toml test --editable '.[dev]'
    add "NICs' algorithms, compiled" compile_nics
}

plan_ptf() {
    is_made .venv-ptf requirements/ptf.txt ptf && return 0
    add "environment .venv-ptf" new_environment .venv-ptf
    add "what packet tests need, from the package index" fill .venv-ptf requirements/ptf.txt ptf --requirement requirements/ptf.txt
}

# Ubuntu's browsers are snaps, which a container cannot install: there the test of the report is skipped with a message.
plan_browser() {
    local found
    for found in chromium chromium-browser google-chrome; do
        ! command -v "$found" >/dev/null || return 0
    done
    if can_install && grep -q '^ID=debian' /etc/os-release; then
        add "Debian packages: chromium" install_if_possible chromium
    else
        say "no browser to test the report in (on Debian: sudo apt-get install chromium)"
    fi
}

have_libfuzzer() { have_program clang && compgen -G "$(clang --print-runtime-dir)/libclang_rt.fuzzer*" >/dev/null; }

# Not every release has a package libclang-rt-dev; in the others libFuzzer comes with clang.
plan_fuzz() {
    have_libfuzzer && return 0
    if can_install; then
        add "Debian packages: clang" install_if_possible clang
        add "Debian packages: libclang-rt-dev" install_if_possible libclang-rt-dev
    else
        say "without clang and its libFuzzer, fuzzing is not guided by coverage (on Debian and Ubuntu: sudo apt-get install clang)"
    fi
}

[ $# -gt 0 ] || set -- test ptf
plan_packages
for part in "$@"; do
    case $part in
        packages) ;;
        run | test | ptf | browser | fuzz) "plan_$part" ;;
        *) die "unknown part '$part'; expected packages, run, test, ptf, browser or fuzz" ;;
    esac
done
take_steps
[ ${#failed[@]} -eq 0 ] || say "went on without ${failed[*]}, which apt-get could not install (why: $LOG)"
