# Needs only Python >= 3.11, pip and make. Everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

DEMO := .venv-demo
export PYTHONDONTWRITEBYTECODE := # compiled files make the many short processes of the tests much faster

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint fmt type layers golden reference recording eval bench docs clean

help: ## list the verbs
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints.txt
	@echo "setting up $(VENV) (once)"
	@$(PYTHON) -c 'import sys; sys.exit("wellworn needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	@touch $(READY)

$(DEMO)/.ready: pyproject.toml constraints.txt
	@echo "installing wellworn alone into $(DEMO) (once)"
	@$(PYTHON) -c 'import sys; sys.exit("wellworn needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(DEMO)
	@$(DEMO)/bin/python -m pip install -q -c constraints.txt -e .
	@touch $@

demo: $(DEMO)/.ready ## install the package alone and see it work: no key, no server, no download
	@$(DEMO)/bin/wellworn demo

test: $(READY) ## the whole product, in minutes
	@$(BIN)/python -m pytest -n 2 -m "not slow"

test-all: $(READY) ## everything: crash, fuzz, servers and data sets as well
	@$(BIN)/python -m pytest -n 2 --hypothesis-profile=heavy

lint: $(READY) ## style and common mistakes
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

fmt: $(READY) ## put the code into the house's form
	@$(BIN)/ruff check --fix -q .
	@$(BIN)/ruff format -q .

type: $(READY) ## strict types
	@$(BIN)/mypy

layers: $(READY) ## imports run downward only
	@$(BIN)/lint-imports --no-cache

golden: $(READY) ## renew the golden files
	@WELLWORN_GOLDEN=write $(BIN)/python -m pytest -n 2 -k golden

reference: $(READY) ## write docs/reference.md from the code
	@$(BIN)/python docs/build_reference.py

recording: $(READY) ## record the demo for the README: docs/demo.svg
	@$(BIN)/wellworn demo --svg docs/demo.svg

DATA ?= ../shared/data

eval: $(READY) ## recall, learning, extraction and tasks on public data (DATA=DIR; none is shipped)
	@for name in locomo realmem multihop learn extraction tasks judge; do \
		echo "== $$name"; $(BIN)/python -m evals $$name $$([ $$name = tasks ] || echo --data $(DATA)) || exit 1; done

bench: $(READY) ## speed and size, as ratios to a baseline in the same run
	@$(BIN)/python -m bench

docs: $(READY) ## run every code block of the documentation
	@$(BIN)/python -m pytest tests/test_docs.py

clean: ## remove what the verbs made
	rm -rf $(VENV) $(DEMO) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
