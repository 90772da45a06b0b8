# Everything runs in .venv, which the first target that needs it makes.
# PYTHON=python3.12 chooses the interpreter, JOBS=4 the test processes,
# ARGS="..." is passed on by run, bench and test.

SHELL := /bin/sh
JOBS ?= 2
ARGS ?=
PYTHON ?=
BIN := .venv/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
RUN := .run

# A venv holds absolute paths: one that was moved, lost its interpreter, or was made with another
# PYTHON is made anew.
HERE := $(shell { pwd; echo '$(PYTHON)'; } | cksum | cut -d' ' -f1)
$(shell test ! -d .venv || $(BIN)/python -c '' 2>/dev/null || rm -f .venv/.base-*)
BASE := .venv/.base-$(HERE)
USE := .venv/.use-$(HERE)
DEV := .venv/.dev-$(HERE)
TEST_ENV := $(if $(SHORT),STATELOG_SHORT=1)

.DEFAULT_GOAL := help
.PHONY: help run test test-servers test-long bench fmt clean

help: ## list the targets
	@echo "make TARGET, where TARGET is one of"
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' Makefile

run: $(USE) ## set up, then run the example plan (make run ARGS="--param STEP.KEY=VALUE")
	@mkdir -p -m 700 $(RUN)
	@$(BIN)/statelog --store $(RUN)/statelog.db run docs/examples/reads-qc/plan.json \
		--work-root $(RUN)/work $(ARGS)

test: $(DEV) ## set up, then check style, types and behaviour
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict -p statelog
	$(BIN)/mypy -p tests
	$(BIN)/python -m pytest -q -n $(JOBS) $(ARGS)

test-servers: $(DEV) ## tests that need programs beside Python (strace, PostgreSQL)
	@command -v strace >/dev/null || { \
		echo "make test-servers needs strace. Install it with" >&2; \
		echo "  sudo apt-get install -y strace" >&2; exit 1; }
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { \
		echo "make test-servers needs PostgreSQL's server. Install it with" >&2; \
		echo "  sudo apt-get install -y postgresql" >&2; exit 1; }
	$(BIN)/python -m pytest -q -m servers $(ARGS)

test-long: $(DEV) ## tests that take minutes (SHORT=1 for their short forms)
	$(TEST_ENV) $(BIN)/python -m pytest -q -m long $(ARGS)

bench: $(DEV) ## measure, beside baselines taken in the same run (ARGS=--quick)
	$(BIN)/python -m tests.bench $(ARGS)

fmt: $(DEV) ## format, and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove what the other targets made
	rm -rf .venv $(RUN) .bench build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BASE):
	@rm -rf .venv
	@good='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'; \
	for python in $(or $(PYTHON),python3 python3.11 python3.12 python3.13 python3.14); do \
		if "$$python" -c "$$good" 2>/dev/null; then \
			echo "setting up .venv with $$("$$python" -V)"; \
			"$$python" -m venv .venv && touch $@ && exit 0; \
			exit 1; \
		fi; \
	done; \
	echo "statelog needs Python 3.11 or later with venv and pip, and found none as" >&2; \
	echo "$(or $(PYTHON),python3 python3.11 ... python3.14). On Debian and Ubuntu:" >&2; \
	echo "  sudo apt-get install -y python3 python3-venv" >&2; \
	echo "or name one: make PYTHON=/path/to/python3 ..." >&2; exit 1

$(USE): $(BASE) pyproject.toml
	@$(PIP) --editable '.[rich,yaml]'
	@touch $@

$(DEV): $(BASE) pyproject.toml
	@$(PIP) --editable '.[dev]'
	@touch $@ $(USE)
