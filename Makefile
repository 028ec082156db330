# Needs Python >= 3.11, pip and make. `make demo` installs the package alone, everything else also the development tools.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO := .venv-demo
DATA ?= ../shared/data
# Compiled files make the many short processes of the tests much faster.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint fmt type layers golden faults reference docs reader recording eval bench clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

define check_python
$(PYTHON) -c 'import sys; sys.exit("wellworn needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
endef

$(DEMO)/.ready: pyproject.toml constraints.txt
	@echo "installing wellworn into $(DEMO) (once)"
	@$(check_python)
	@$(PYTHON) -m venv $(DEMO)
	@$(DEMO)/bin/python -m pip install -q --disable-pip-version-check --no-compile -c constraints.txt -e .
	@touch $@

$(READY): pyproject.toml constraints.txt
	@echo "setting up $(VENV) (once)"
	@$(check_python)
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(DEMO)/.ready ## see it work: remember, recall, learn, forget
	@$(DEMO)/bin/wellworn demo

test: $(READY) ## test the whole product, in minutes
	@$(BIN)/python -m pytest -n 2 -m "not slow"

test-all: $(READY) ## test everything: also crashes, fuzzing, servers and data sets
	@$(BIN)/python -m pytest -n 2 --hypothesis-profile=heavy

lint: $(READY) ## check style and common mistakes
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

fmt: $(READY) ## format the code
	@$(BIN)/ruff check --fix -q .
	@$(BIN)/ruff format -q .

type: $(READY) ## check types
	@$(BIN)/mypy

layers: $(READY) ## check that imports run downward
	@$(BIN)/lint-imports --no-cache

golden: $(READY) ## renew the golden files
	@WELLWORN_GOLDEN=write $(BIN)/python -m pytest -n 2 -k "golden or recorded"

faults: $(READY) ## kill, fill, tear and flip on purpose; writes the table of docs/security.md
	@WELLWORN_FAULTS=write $(BIN)/python -m pytest -n 2 -m crash

reference: $(READY) ## write docs/reference.md from the code
	@$(BIN)/python docs/build_reference.py

reader: ## train the reader and pack it (BASE=FILE; needs an accelerator and PyTorch)
	@PYTHONPATH=src:. $(PYTHON) -m training.train training/out $(BASE) training/out/trained --steps 3600 --rate 6e-5
	@PYTHONPATH=src:. $(PYTHON) -m training.pack training/out/trained
	@PYTHONPATH=src:. $(PYTHON) -m training.answers training/out training/out/answers
	@PYTHONPATH=src:. $(PYTHON) -m training.pack training/out/answers --answers

docs: $(READY) ## write the reference and run every code block of the documentation
	@$(BIN)/python docs/build_reference.py
	@$(BIN)/python -m pytest tests/test_docs.py

recording: $(DEMO)/.ready ## record the demo as docs/demo.svg
	@$(DEMO)/bin/wellworn demo --svg docs/demo.svg

eval: $(READY) ## measure quality on public data sets (DATA=DIR; none is shipped)
	@for name in life locomo realmem multihop hops learn preferences sessions extraction documents tasks judge; do echo "== $$name"; \
	$(BIN)/python -m evals $$name $$(case $$name in life | hops | sessions | documents | tasks | preferences) ;; *) echo --data $(DATA) ;; esac) || exit 1; done

bench: $(READY) ## measure speed, as ratios to a bare baseline
	@$(BIN)/python -m bench

clean: ## remove what these commands made
	rm -rf $(VENV) $(DEMO) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
