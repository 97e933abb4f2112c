#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All static checks: ruff, mypy, the C compiler's warnings, shellcheck. Runs all of them; exits with 1 if any fails.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

BIN=.venv/bin
CC=${CC:-cc}
failed=()

# check NAME COMMAND...: runs the command and records a failure.
check() {
    local name=$1
    shift
    echo "lint: $name" >&2
    "$@" || failed+=("$name")
}

# Each C file by itself, with the headers of the folders it may include.
c_sources() {
    local file python status=0
    python=$("$BIN/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    while IFS= read -r -d '' file; do
        "$CC" -std=gnu11 -Wall -Wextra -Werror -fsyntax-only \
            -I tailrace/codec/c -I tailrace/switch/core/c -I tailrace/sim/network/c -I tailrace/switch/daemon/io -isystem "$python" -I "$(dirname "$file")" "$file" || status=1
    done < <(find tailrace checks tests -name '*.c' -print0 2>/dev/null | sort -z)
    return $status
}

shell_sources() {
    local files
    mapfile -d '' files < <(find scripts .ci mininet -type f -print0 2>/dev/null | xargs -0 -r grep -lZE '^#!.*(ba)?sh$')
    shellcheck "${files[@]}"
}

python_folders() {
    local folder
    for folder in tailrace checks examples ptf_tests scripts tests; do
        if [ -n "$(find "$folder" -name '*.py' -print -quit 2>/dev/null)" ]; then
            echo "$folder"
        fi
    done
}

# The scripts in mininet/ import each other from their folder; they are no package (`mininet` is Debian's package).
mininet_scripts() { "$BIN/mypy" --strict --no-error-summary mininet/*.py; }

mapfile -t folders < <(python_folders)
check "ruff check" "$BIN/ruff" check --quiet .
check "ruff format" "$BIN/ruff" format --quiet --check .
check "mypy --strict" "$BIN/mypy" --strict --no-error-summary "${folders[@]}"
check "mypy --strict, mininet" mininet_scripts
check "C warnings" c_sources
check "shellcheck" shell_sources

if [ ${#failed[@]} -gt 0 ]; then
    echo "lint: failed: $(IFS=,; echo "${failed[*]}")" >&2
    exit 1
fi
echo "lint: clean" >&2
