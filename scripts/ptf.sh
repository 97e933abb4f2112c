#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The packet tests on every switch that this machine can run: ours always, BMv2's where it is installed.
# TARGET=native or bmv2 runs them on that one alone; PLUGIN=DIR runs those in DIR/ptf_tests, not ours; SMOKE=1 runs
# one test a program and frame format, those of ptf_tests/smoke.txt.
# They make network namespaces, so they want root; without it they are skipped with a line that says so.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "ptf: $*" >&2; }

# May this user make a network namespace with a veth pair in it?
can_make_namespaces() {
    unshare --net sh -c 'ip link add probe0 type veth peer name probe1' >/dev/null 2>&1
}

PATH=$PATH:/usr/sbin:/sbin
if ! can_make_namespaces; then
    say "skipped: no right to make network namespaces here (run as root for the packet tests)"
    exit 0
fi
# BMv2 has the machine to itself: it takes a core and more.
run() {
    local parts=1
    if [ "$1" = native ]; then parts=3; fi
    local tests=()
    if [ -n "${SMOKE:-}" ] && [ -z "${PLUGIN:-}" ]; then mapfile -t tests < ptf_tests/smoke.txt; fi
    .venv/bin/python scripts/run_ptf.py ${PLUGIN:+--plugin "$PLUGIN"} --target "$1" --parts=$parts "${tests[@]}"
}

case ${TARGET:-} in
    native | bmv2) run "$TARGET"; exit ;;
    "" | auto) ;;
    *) say "TARGET is '$TARGET', expected native or bmv2"; exit 2 ;;
esac
run native
if command -v simple_switch_grpc >/dev/null; then
    run bmv2
else
    say "simple_switch_grpc is not on PATH: not run on BMv2 (\`make vm\` makes a machine that has it: docs/vm.md)"
fi
