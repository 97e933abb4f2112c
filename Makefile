# SPDX-License-Identifier: Apache-2.0
# Thin: each target names a script or a module. `make help` lists them.
#   OUT=DIR   where bench and conformance write their JSON      ASAN=1  sanitizer build of the switch in the tests
#   make ptf takes PLUGIN=DIR, whose packet tests run instead of ours, and SMOKE=1: one test a program and frame format
#   make run takes TARGET=auto|bmv2|native|virtual SCHEME=… VARIANT=… TOPO=… WORKLOAD=… FLOWS=N SEED=1..10 FAULT=… OUT=DIR CLI=1
#   PYTHON=…  interpreter for the environments                  PYTEST_ARGS='-k name'  passed on to pytest
SHELL := /bin/bash
.DEFAULT_GOAL := help

OUT ?= out
PYTHON ?= python3
PYTEST_ARGS ?=
FUZZ_SECONDS ?= 120
FUZZ_ARGS ?=
SEEDS ?= 200
MINUTES ?= 5
BIN := .venv/bin
# Folders of P4 programs; each has its compiled output in build/.
P4_DIRS := $(wildcard p4src) tests/programs
# Schemes from outside, which include files of p4src.
P4_EXAMPLES := examples/two_choices
export PYTHON
# Of these, what is not given stays empty, and tailrace/cli/make_run.py fills it in.
TARGET ?=
SCHEME ?=
VARIANT ?=
TOPO ?=
WORKLOAD ?=
FLOWS ?=
SEED ?=
FAULT ?=
PLUGIN ?=
CLI ?=
export OUT TARGET SCHEME VARIANT TOPO WORKLOAD FLOWS SEED FAULT CLI

ifeq ($(ASAN),1)
# The instrumented switch is loaded into an ordinary Python, so the sanitizer's library must come first; Python
# itself keeps memory to its end, which is no leak of ours.
export ASAN
SANITIZER_ENV = LD_PRELOAD="$$(cc -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0:abort_on_error=1
endif

.PHONY: help setup run test test-all pytest ptf docs fuzz soak chaos bench conformance p4 check-p4 lint dist vm clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: ## both Python environments with all that tests need, and Debian packages where root
	@scripts/setup.sh

run: ## schemes beside their baselines -> table, figure, OUT/ (SCHEME=flowcut|spritz|rlb|letflow …)
	@scripts/setup.sh run
	@$(BIN)/python -m tailrace.cli.make_run

# The unit tests come last: their closing lines are the verdict that CI reads.
test: setup ## check-p4, packet tests, unit tests: what is quick, and one of each kind that is slow
	@$(MAKE) --no-print-directory check-p4
	@$(MAKE) --no-print-directory ptf SMOKE=$(if $(filter all,$(TAILRACE_TESTS)),,1)
	@for dir in $(P4_EXAMPLES); do $(MAKE) --no-print-directory ptf PLUGIN=$$dir || exit; done
	@$(MAKE) --no-print-directory pytest

# What `make test` leaves out, tests/conftest.py and tests/long.py say.
test-all: export TAILRACE_TESTS = all
test-all: export ORDER = --random-order-bucket=module --random-order-seed=$(shell echo $$RANDOM)
test-all: test ## all tests, in random order and with other seeds; twenty minutes of fuzzing, the VM
	@TAILRACE_CHROOT=1 $(BIN)/pytest -q tests/test_provision.py
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=1200

# Runs in real time have the machine to themselves; everything else shares its cores: three processes on two, since
# some tests wait. With PYTEST_ARGS: just those.
pytest: setup ## the unit tests alone
ifeq ($(PYTEST_ARGS),)
	@$(SANITIZER_ENV) $(BIN)/pytest -q tests/mininet $(ORDER)
	@$(SANITIZER_ENV) $(BIN)/pytest --numprocesses 3 --dist worksteal --ignore tests/mininet $(ORDER)
else
	@$(SANITIZER_ENV) $(BIN)/pytest $(PYTEST_ARGS)
endif

ptf: setup ## packet tests: TARGET=native|bmv2, else native, and BMv2 where it is on PATH
	@TARGET="$(TARGET)" PLUGIN="$(PLUGIN)" SMOKE="$(SMOKE)" scripts/ptf.sh

fuzz: setup ## frames, updates, programs, threads under sanitizers, guided by coverage, for FUZZ_SECONDS=120
	@$(BIN)/python -m tests.switch.fuzz --seconds $(FUZZ_SECONDS) $(FUZZ_ARGS)

bench: setup ## speed and size of the native switch -> OUT/bench.json
	@$(BIN)/python -m checks.bench --out "$(OUT)"

soak: setup ## SEEDS=200 simulated disasters in virtual time, or SEEDS=A..B
	@$(BIN)/python -m checks.soak --seeds $(if $(findstring ..,$(SEEDS)),$(SEEDS),1..$(SEEDS)) --workers 2 --shrink

chaos: setup ## MINUTES=5 of faults on native switches in real time -> OUT/chaos (root)
	@PYTHONPATH=mininet $(BIN)/python -m checks.soak.chaos --minutes "$(MINUTES)" --out "$(OUT)/chaos"

conformance: setup ## native switch against simple_switch_grpc -> OUT/conformance.json
	@$(BIN)/python -m checks.conformance --out "$(OUT)"

p4: setup ## recompile every P4 program (needs p4c)
	@for dir in $(P4_DIRS); do $(BIN)/python scripts/compile_p4.py $$dir $$dir/build || exit; done
	@for dir in $(P4_EXAMPLES); do $(BIN)/python scripts/compile_p4.py -I p4src $$dir $$dir/build || exit; done

check-p4: setup ## fail when compiled programs and their sources differ
	@for dir in $(P4_DIRS); do $(BIN)/python scripts/compile_p4.py --check $$dir $$dir/build || exit; done
	@for dir in $(P4_EXAMPLES); do $(BIN)/python scripts/compile_p4.py -I p4src --check $$dir $$dir/build || exit; done

docs: setup ## tables and pages of docs/ that come from the code; then the site -> build/site/index.html
	@$(BIN)/python scripts/key_tables.py
	@$(BIN)/python scripts/p4runtime_page.py
	@$(BIN)/python scripts/make_docs.py
	@$(BIN)/python scripts/make_site.py

lint: setup ## ruff, mypy --strict, C warnings, shellcheck
	@scripts/lint.sh

dist: setup ## sdist, and a wheel that needs no C compiler, for this version of Python -> dist/
	@scripts/dist.sh

vm: ## a virtual machine with BMv2 and Mininet (needs Vagrant; TAILRACE_UBUNTU=22.04|24.04)
	@scripts/vm.sh

clean: ## remove environments, caches and results
	rm -rf .venv .venv-ptf build dist out *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
