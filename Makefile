# Every target does its own set-up. What varies:
#   PYTHON=python3.12   the interpreter to make .venv from (3.11 or newer)
#   ARGS="..."          passed on: make test ARGS="-k cron", make up ARGS="--store sqlite:///my.db"
#   DEMO=0              make up without the demo jobs
#   UPGRADE=1           make lock to the newest versions that pyproject.toml allows

PYTHON ?= python3
ARGS ?=
DEMO ?= 1
UPGRADE ?=
BIN := .venv/bin
# Tests with real processes, a browser, Terraform or an emulator of AWS have the machine to
# themselves: they measure time, or would run out of it.
ALONE = tests/processes tests/browser tests/terraform tests/aws
TESTS = $(if $(ARGS),$(BIN)/python -m pytest $(ARGS),$(BIN)/python -m pytest -n auto \
  $(ALONE:%=--ignore=%) && $(BIN)/python -m pytest $(ALONE))

.DEFAULT_GOAL := help
.PHONY: help setup up test check cover mutants bench zip fmt docs docs-check lock clean check-python \
  infra infra-lock deploy-local

help: ## say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

check-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  found=$$($(PYTHON) --version 2>&1) || found=missing; \
	  echo "dynsched needs Python 3.11 or newer; $(PYTHON) is $$found." >&2; \
	  echo "Name another one: make $(or $(MAKECMDGOALS),test) PYTHON=python3.12" >&2; \
	  exit 1; }

setup: check-python ## make .venv from requirements.lock, if it is not so already
	@$(PYTHON) tools/setup_venv.py

up: setup ## run the scheduler with its demo jobs, on SQLite in this folder
	$(BIN)/dynsched up $(if $(filter 0,$(DEMO)),,--demo) $(ARGS)

test: setup ## run the tests and doctests
	$(TESTS)

check: setup ## format, lint, types, import contracts, pages, tests: what CI asks, with infra
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) --no-print-directory docs-check
	$(TESTS)

cover: setup ## run the tests and say which lines they leave out
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest$(if $(ARGS), $(ARGS))
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

mutants: setup ## take each rule of the protocol out and see its tests fail; some minutes
	$(BIN)/python tools/mutate_rules.py $(ARGS)

bench: setup ## measure what the README claims
	$(BIN)/python -m bench $(ARGS)

zip: setup ## build the zip of the functions on AWS: build/dynsched-lambda.zip
	$(BIN)/python tools/build_zip.py $(ARGS)

fmt: setup ## format, and mend what the linter can mend
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

docs: setup ## write the pages that are generated from the code
	$(BIN)/python tools/generate_docs.py --write
	$(BIN)/python -m tools.infra.readme --write

docs-check: setup ## say whether the generated pages are up to date
	$(BIN)/python tools/generate_docs.py --check
	$(BIN)/python -m tools.infra.readme --check

deploy-local: setup ## an emulator of AWS with the module applied; ARGS=--stop ends it
	$(BIN)/python tools/deploy_local.py $(ARGS)

infra: setup ## prove the Terraform module, as far as that goes without AWS; some two minutes
	$(BIN)/python -m tools.infra $(ARGS)

lock: check-python ## resolve the dependencies into requirements.lock, for all platforms
	$(PYTHON) -m venv build/uv
	build/uv/bin/python -m pip install -qq 'uv>=0.13,<1'
	build/uv/bin/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --custom-compile-command 'make lock' \
	  $(if $(UPGRADE),--upgrade) --quiet --output-file requirements.lock

infra-lock: check-python ## pin the tools that prove the Terraform module
	$(PYTHON) -m venv build/uv
	build/uv/bin/python -m pip install -qq 'uv>=0.13,<1'
	for name in requirements bindings; do build/uv/bin/uv pip compile infra/$$name.in \
	  $$([ $$name = requirements ] || echo --no-deps) --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --custom-compile-command 'make infra-lock' \
	  $(if $(UPGRADE),--upgrade) --quiet --output-file infra/$$name.lock || exit; done

clean: ## remove what was made here; stores (*.db) stay
	rm -rf .venv build dist .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache \
	  .hypothesis .import_linter_cache
