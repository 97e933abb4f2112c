#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the packet tests on every switch that this machine has: always the native one, and BMv2 if it is installed.
# TARGET=native or bmv2 selects one switch; PLUGIN=DIR runs the tests in DIR/ptf_tests instead of ours; SMOKE=1 runs
# one test per program and frame format, those of ptf_tests/smoke.txt.
# The tests make network namespaces, so they need root; without it they are skipped with a message.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "ptf: $*" >&2; }

# Whether this user may make a network namespace with a veth pair in it.
can_make_namespaces() {
    unshare --net sh -c 'ip link add probe0 type veth peer name probe1' >/dev/null 2>&1
}

PATH=$PATH:/usr/sbin:/sbin
if ! can_make_namespaces; then
    say "skipped: no right to make network namespaces here (run as root for the packet tests)"
    exit 0
fi
# The tests on BMv2 are not divided: BMv2 takes more than one core.
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
    say "simple_switch_grpc is not on PATH: tests are not run on BMv2 (\`make vm\` makes a machine with it: docs/programs/vm.md)"
fi
