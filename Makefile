# `make help` lists the targets. Each sets up what it needs; stamps keep the second run short.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# Compiled builds: the one that the tests run on, and the one that .venv runs and that is measured.
COMPILED := build/compiled
OPTIMIZED := build/optimized
# The source as it is, whatever has been built.
PURE := PYTHONPATH=$(CURDIR)/src

# Overrides the environment: otherwise each of thousands of processes would compile all modules anew.
export PYTHONDONTWRITEBYTECODE :=

SOURCES := $(shell find src -name '*.py' -o -name '*.c' 2>/dev/null)
# The suite with the longest files is not the last one, so that no process idles at the end.
SUITES := $(wildcard tests/unit tests/scenarios tests/property tests/fault tests/integration \
	tests/conformance)
# The suites that run on plain Python as well, and those of `make compiled`; `make test` runs all.
PURE_SUITES = $(wildcard tests/unit tests/property $(if $(SHORT),,tests/conformance))
COMPILED_SUITES := $(wildcard tests/unit tests/property)

# How many processes share the tests: `make test WORKERS=4`. They get them file by file, in this order,
# so that what a file starts is started once; each has an Apache ZooKeeper and an ensemble of its own.
# Four have something to do on two processors, since tests wait for servers and for other processes.
WORKERS ?= 4
QUICK_WORKERS ?= 2
SHARED := -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# How long the long runs are: `make differ DIFFER_OPERATIONS=1000000`, `make crash CRASH_ROUNDS=500`,
# `make hostile HOSTILE_SCALE=20`, `make fuzz FUZZ_SECONDS=3600`,
# `make storm STORM_SECONDS=3600`; `make storm STORM_SEED=7` replays one storm.
DIFFER_OPERATIONS ?= 100000
# Which Apache ZooKeeper the comparison is with: Debian's, or `make differ JUDGE=3.9` (fetched once, 450 MB).
JUDGE ?= debian
CRASH_ROUNDS ?= 100
HOSTILE_SCALE ?= 5
FUZZ_SECONDS ?= 600
STORM_SECONDS ?= 600
SEEDS ?= 200
# Scripts for the model of etcd, and how many of them have faults.
SCRIPTS ?= 5000
FAULTS ?= 240

# Where `make serve` serves: `make serve PORT=2182 DATA=/tmp/demo`. PORT in the environment is ignored.
PORT := 2181
DATA := ./data

# Whether there is a compiled build: where there is a compiler, but not with PADDOCK_PURE=1.
COMPILES := $(if $(filter 1,$(PADDOCK_PURE)),,$(shell PYTHON='$(PYTHON)' tools/judges.sh compiler && echo yes))

.DEFAULT_GOAL := help
.PHONY: install build serve test test-all test-oldest test-newest debian-python debian-unit fresh lock dist reproducible quick announce both check format generated docs bench bench-guard pure compiled differ crash hostile fuzz storm simulate etcd-model mutants lab judge judges applications judge-3.9 incidents clean help

# pip takes what a lock file has, and only if its hash is the one in that file. What PyPI has no wheel of
# is built by the setuptools of run.txt, which is installed first.
INSTALL := -m pip install --quiet --disable-pip-version-check
LOCKED := $(INSTALL) --require-hashes --no-build-isolation --requirement
EDITABLE := $(INSTALL) --no-deps --no-build-isolation --editable .

$(VENV)/.installed: pyproject.toml setup.py requirements/run.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(LOCKED) requirements/run.txt
	PADDOCK_PURE=1 $(BIN)/python $(EDITABLE)
	@$(BIN)/python -m tools.build --hook
	@touch $@

$(VENV)/.dev: $(VENV)/.installed requirements/dev.txt
	$(BIN)/python $(LOCKED) requirements/dev.txt
	@touch $@

# Environments of their own, which are made anew: what locks and releases, and what is older or newer
# than the lock.
RELEASE := build/release
$(RELEASE)/.installed: requirements/release.txt
	$(PYTHON) -m venv --clear $(RELEASE)
	$(RELEASE)/bin/python $(LOCKED) requirements/release.txt
	@touch $@

build/oldest/.installed: requirements/oldest.txt requirements/run.txt
	$(PYTHON) -m venv --clear build/oldest
	build/oldest/bin/python $(LOCKED) requirements/run.txt
	build/oldest/bin/python $(LOCKED) requirements/oldest.txt
	PADDOCK_PURE=1 build/oldest/bin/python $(EDITABLE)
	@touch $@

# What is correct is correct at any level, and this one compiles fastest.
OPT_LEVEL ?= 0
# From scratch, so that no compiled module outlives its source.
$(COMPILED)/.built: $(VENV)/.dev $(SOURCES)
	rm -rf $(COMPILED)
	PADDOCK_COMPILE=1 PADDOCK_PURE= PADDOCK_OPT_LEVEL=$(OPT_LEVEL) $(BIN)/python setup.py --quiet build \
		--build-base build/for-tests --build-lib $(COMPILED)
	@touch $@

# As `pip install .` builds it. tools/build.py knows whether it is current.
$(OPTIMIZED)/.built: $(VENV)/.installed $(SOURCES)
	@echo 'compiling Paddock once, in two or three minutes; PADDOCK_PURE=1 skips it' >&2
	@$(BIN)/python -m tools.build

# What `make bench` and `make hostile` run.
BUILT := $(if $(COMPILES),$(OPTIMIZED)/.built)
RUN := $(if $(COMPILES),PYTHONPATH=$(CURDIR)/$(OPTIMIZED))

install: $(VENV)/.installed ## make .venv and install Paddock into it

build: $(VENV)/.installed $(BUILT) ## compile now what .venv runs, and wait for it

# It does not wait for the compiler: what is not compiled yet runs as plain Python.
serve: $(VENV)/.installed ## run a server on 127.0.0.1:2181 (PORT=) with its data in ./data (DATA=)
	@$(if $(COMPILES),$(BIN)/python -m tools.build --background,echo 'make serve: this is plain Python' >&2)
	@echo 'make serve PORT=$(PORT) DATA=$(DATA)' >&2
	@exec $(BIN)/paddock serve --host 127.0.0.1 --port $(PORT) --data '$(DATA)'

judges: ## install what the tests are judged by: Apache ZooKeeper, Curator, etcd, Kerberos, strace, gcc, a JDK
	@tools/judges.sh

# Without a network the tests that need it are skipped, on CI they fail.
judge-3.9: $(VENV)/.dev ## fetch Apache ZooKeeper 3.9 and Curator 5.9 into a cache outside the tree: 450 MB, once
	@tools/judges.sh zookeeper-3.9

test: announce $(VENV)/.dev judges ## check, then every test on the compiled build, many of them on plain Python too
	@$(MAKE) --no-print-directory both

# Said before anything is installed.
announce:
	@tools/announce.sh $(if $(wildcard $(VENV)/.dev),,$(VENV))

# What finds most mistakes soonest: every unit test, the traces of the state machine, and each part in
# use once: the command as a process, asyncio and blocking programs, a lock.
QUICK := tests/unit tests/scenarios tests/integration/test_readme.py
quick: $(VENV)/.dev ## an answer in two minutes: lint, unit tests, scenarios, the programs of the README
	$(BIN)/ruff check --quiet
	$(PURE) $(BIN)/python -m pytest -q --no-header -n $(QUICK_WORKERS) --dist loadfile $(QUICK)

test-all: announce $(VENV)/.dev judges ## the same, with the tests that take minutes, and those on Apache ZooKeeper 3.9
	-@tools/judges.sh zookeeper-3.9
	@$(MAKE) --no-print-directory both SHORT=
	@$(MAKE) --no-print-directory test-oldest

# On Python 3.11, for which the oldest packages have wheels.
test-oldest: build/oldest/.installed ## unit tests and scenarios with the oldest dependencies that pyproject.toml allows
	$(PURE) build/oldest/bin/python -m pytest -q --no-header -n $(QUICK_WORKERS) --dist loadfile $(QUICK)

# Python as a distribution ships it is often an older release than the one in .venv, with other defects.
DEBIAN_PYTHON := /usr/bin/python3
build/debian/.installed: requirements/dev.txt requirements/run.txt pyproject.toml setup.py $(realpath $(DEBIAN_PYTHON))
	$(DEBIAN_PYTHON) -m venv --clear build/debian
	build/debian/bin/python $(LOCKED) requirements/run.txt
	build/debian/bin/python $(LOCKED) requirements/dev.txt
	PADDOCK_PURE=1 build/debian/bin/python $(EDITABLE)
	@touch $@

debian-python: $(VENV)/.dev ## unit tests on Debian's own Python, where that is not the one in .venv; part of `make test`
	@if tools/judges.sh another-python; then $(MAKE) --no-print-directory debian-unit; fi

debian-unit: build/debian/.installed
	@echo "unit tests on $$(build/debian/bin/python -V), as Debian ships it"
	$(PURE) build/debian/bin/python -m pytest $(SHARED) $(call BUT,foreign) tests/unit

# As root: Debian 12 and 13 in folders, with nothing but Python, make and git. FRESH=trixie tries one of them; another
# release of Debian is tried in the same way.
FRESH ?= bookworm trixie
fresh: ## README's two commands in a fresh Debian 12 and 13, as root and as a user without rights: two hours (FRESH=)
	@tools/fresh_all.sh $(FRESH)

# Nothing is locked here: it shows what `make lock` would bring.
test-newest: ## the same with the newest packages of PyPI, whatever the lock files have
	$(PYTHON) -m venv --clear build/newest
	PADDOCK_PURE=1 build/newest/bin/python $(INSTALL) --editable '.[dev]'
	$(PURE) build/newest/bin/python -m pytest -q --no-header -n $(QUICK_WORKERS) --dist loadfile $(QUICK)

lock: $(RELEASE)/.installed ## write requirements/*.txt: the newest versions that pyproject.toml allows (KEEP=1: the present ones, where they fit)
	$(RELEASE)/bin/python -m tools.lock $(if $(KEEP),--keep)

# From the last commit, whatever was edited since. PYTHONS=3.11 builds for one of them.
PYTHONS ?= 3.11 3.12 3.13
dist: $(RELEASE)/.installed ## sdist, wheels, SBOM and checksums into ./dist, each installed and tried with Python 3.11 to 3.13 (PYTHONS=)
	$(RELEASE)/bin/python -m tools.dist $(PYTHONS)

reproducible: $(RELEASE)/.installed ## build sdist and wheel twice, in two folders, and compare them byte for byte
	$(RELEASE)/bin/python -m tools.reproducible $(PYTHONS)

# Types are checked while the modules are compiled; what each of them says stays together.
WHOLE_OUTPUT := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
both: $(VENV)/.dev
ifneq ($(COMPILES),)
	@$(MAKE) --no-print-directory -j2 $(WHOLE_OUTPUT) check $(COMPILED)/.built
	@$(MAKE) --no-print-directory debian-python pure compiled COMPILED_SUITES='$(SUITES)'
else
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory debian-python
	@echo 'every test on plain Python, because there is no C compiler, or PADDOCK_PURE=1 is set'
	$(PURE) $(BIN)/python -m pytest $(SHARED) $(if $(SHORT),-m '$(SHORT)') $(SUITES)
endif

check: $(VENV)/.dev ## format, lint, types, import rules, generated code
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(PURE) $(BIN)/python -m pytest -q --no-header tests/unit/test_import_rules.py tests/unit/tools/test_twin_generated.py
	$(PURE) $(BIN)/python -m pytest -q --no-header -m source tests/integration/test_reference.py
	$(PURE) $(BIN)/python -m pytest -q --no-header \
		tests/integration/test_commands_reference.py::test_the_page_is_that_of_the_code

format: $(VENV)/.dev ## format, and mend what the linter can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

generated: $(VENV)/.dev ## write what is written by tools: the blocking twin, the tables of settings and metrics, the reference
	$(PURE) $(BIN)/python tools/twin.py
	$(PURE) $(BIN)/python tools/settings.py
	$(PURE) $(BIN)/python tools/metrics.py
	$(PURE) $(BIN)/python tools/reference.py
	$(PURE) $(BIN)/python tools/commands.py

# Of the dashboard, as it is now; without chromium, and with PICTURES= , those that are there stay.
PICTURES ?= $(CURDIR)/docs/pictures
docs: $(VENV)/.dev ## take the pictures of the dashboard, and build the documentation into ./site; a warning is a failure
ifneq ($(PICTURES),)
	$(PURE) PICTURES='$(PICTURES)' $(BIN)/python -m pytest -q --no-header tests/browser/test_pictures.py
endif
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo 'open site/index.html, or serve it: python3 -m http.server --directory site'

# Empty for the long tests, too.
SHORT ?= not long
BUT = -m '$(if $(SHORT),$(SHORT) and )not $(1)'
# What asks a foreign server alone says the same of both builds; a cluster takes long.
pure: $(VENV)/.dev ## unit and property tests on plain Python; with SHORT= those of conformance, too
	$(PURE) $(BIN)/python -m pytest $(SHARED) $(call BUT,foreign and not cluster) $(PURE_SUITES)

compiled: $(COMPILED)/.built ## build the hot modules with mypyc; unit and property tests on them
	PYTHONPATH=$(CURDIR)/$(COMPILED) $(BIN)/python tools/compiled.py
	PYTHONPATH=$(CURDIR)/$(COMPILED) $(BIN)/python -m pytest $(SHARED) $(call BUT,source) $(COMPILED_SUITES)

JUDGE_NAME = $(or $(NAME_OF_$(JUDGE)),$(error JUDGE is debian or 3.9, not '$(JUDGE)'))
NAME_OF_debian := apache
NAME_OF_3.9 := apache-3.9
differ: $(VENV)/.dev judges $(if $(filter 3.9,$(JUDGE)),judge-3.9) ## the long comparison with Debian's Apache ZooKeeper (JUDGE=3.9), operation by operation
	$(PURE) $(BIN)/python -m tests.differ --left $(JUDGE_NAME) --operations $(DIFFER_OPERATIONS) $(DIFFER)

crash: $(VENV)/.dev judges ## the long crash tests
	CRASH_ROUNDS=$(CRASH_ROUNDS) $(PURE) $(BIN)/python -m pytest -s tests/fault -k crash

# On the compiled build, where there is one, and with nothing else to do: from a scale of 5 on, which
# is the default, it is judged how long others wait and how steps grow from scale 1 on.
# HOSTILE='--only identities' runs some of the cases, HOSTILE=--write keeps the table in its page.
hostile: $(VENV)/.dev $(BUILT) ## the attacks on a server, larger than in the tests, with a table of what each costs
	HOSTILE_SCALE=$(HOSTILE_SCALE) $(RUN) $(BIN)/python -m pytest -s tests/fault -k 'hostile and not hostile_costs'
	$(RUN) $(BIN)/python -m tests.fault.stage.hostile_table --scale $(HOSTILE_SCALE) $(HOSTILE)

fuzz: $(VENV)/.dev ## the fuzzing tests, from new seeds until the time is over
	$(PURE) $(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)

storm: $(VENV)/.dev ## every recipe and all faults at once, from new seeds until the time is over (STORM_SEED= replays one)
	$(PURE) $(BIN)/python -m tests.fault.stage.recipe_storm --seconds $(STORM_SECONDS) $(if $(STORM_SEED),--seed $(STORM_SEED))

# SEEDS=7:8 plays one world again. SIMULATE='--state build/worlds.json' keeps what is done, so that a
# campaign that was stopped goes on.
simulate: $(VENV)/.dev ## simulated worlds of servers, clients and faults, each judged (SEEDS=1000, or SEEDS=7:8)
	$(PURE) $(BIN)/python -m paddock.testing.simulation.campaign --seeds $(SEEDS) $(SIMULATE)

# ETCD_MODEL='--scene restore --seed 7' plays one script again, and prints its story if it differs;
# ETCD_MODEL=--write keeps the table in its page.
etcd-model: $(VENV)/.dev judges ## the simulation's model of etcd beside three real members, script by script (SCRIPTS=, FAULTS=)
	$(PURE) $(BIN)/python -m tests.etcd_model --scripts $(SCRIPTS) --faults $(FAULTS) $(ETCD_MODEL)

# MUTANTS='--only lease-too-long' runs one of them, and writes nothing; MUTANTS=--missing goes on with
# what was not found yet.
mutants: $(VENV)/.dev ## bugs planted in the source, each found by the simulated worlds; writes the table of them
	$(BIN)/python -m tests.mutants $(MUTANTS)

# Needs root: servers, etcd and clients run in network namespaces. On CI nothing of it is skipped.
# Histories are kept in build/lab, where `make judge` finds them.
lab: $(VENV)/.dev judges ## real partitions, kills, pauses, clocks, slow and full disks, judged, and a control: about ten minutes, with a table of what clients noticed
	$(PURE) timeout 1800 $(BIN)/python -m pytest -s tests/fault/test_lab.py tests/fault/test_wrong_proxy.py

# INCIDENTS=7:8 plays one again, INCIDENT=--cluster those of two servers.
INCIDENTS ?= 100
incidents: $(VENV)/.dev judges ## incidents with real processes, from seeds, whose causes `paddock explain` has to name (INCIDENTS=1000, or 7:8)
	$(PURE) $(BIN)/python -m tests.fault.stage.incidents --seeds $(INCIDENTS) $(INCIDENT)

# Patroni, Celery and tooz come from PyPI, into environments of their own in build/applications. If it
# takes too long, it is interrupted, as by Ctrl-C, so that it ends what it has started.
applications: $(VENV)/.dev ## Patroni with PostgreSQL, Celery, and tooz with its own tests, on Paddock, with what they should survive
	@tools/judges.sh postgresql
	$(PURE) timeout --foreground --signal INT --kill-after 120 1800 $(BIN)/python -m pytest -s tests/applications

FILE ?= build/lab/*.history.gz
judge: $(VENV)/.dev ## judge histories that were kept, again (FILE=build/lab/cut_off.history.gz)
	$(PURE) $(BIN)/python -m paddock.testing.simulation.kept $(FILE)

bench: $(VENV)/.dev judges $(BUILT) ## measure Paddock beside Apache ZooKeeper, kazoo and etcd: an hour; BENCH=--quick for 20 minutes
	@tools/etcd.sh
	$(RUN) $(BIN)/python -m bench.run $(BENCH)

# On the compiled build, where there is one, and on plain Python: they have a baseline each.
bench-guard: $(VENV)/.dev $(BUILT) ## compare the instructions of the hot paths with bench/baselines.json (RECORD=1 writes it)
	@tools/judges.sh valgrind
	$(BIN)/python -m bench.guard $(if $(COMPILES),--compiled $(OPTIMIZED)) $(if $(RECORD),--record) $(if $(AGAINST),--against '$(AGAINST)')

clean: ## remove everything that was made here, but not ./data
	rm -rf $(VENV) build dist site src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf bench/limit bench/zkload bench/peers
	find src tests tools bench -name __pycache__ -type d -exec rm -rf {} +

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9.-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
