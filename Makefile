# Two commands do everything on a fresh machine: `make demo` and `make test`. `make help` lists the rest.

PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
VERBS := tile label train predict refine trace map compare evaluate export view run

# What a verb is given: make train REGION=demo MINUTES=10 WORKERS=2
OPTIONS := $(if $(MINUTES),--minutes $(MINUTES)) $(if $(WORKERS),--workers $(WORKERS)) $(ARGS)

.DEFAULT_GOAL := help
.PHONY: help demo test check install clean $(VERBS)

help:  ## This list
	@awk -F ':.*## ' '/^[a-z].*:.*## / {printf "make %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "make VERB REGION=NAME       VERB is one of: $(VERBS)"

install: .venv/.installed  ## Make .venv with all that OrthoTrace needs

demo: .venv/.installed  ## Make a small county, map it, open the map (minutes; no network, no GPU)
	$(BIN)/orthotrace demo $(ARGS)

test: .venv/.installed-dev  ## All tests
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal $(ARGS)

$(VERBS): .venv/.installed
	@test -n "$(REGION)" || { echo "make $@ needs a region: make $@ REGION=demo" >&2; exit 2; }
	$(BIN)/orthotrace $@ $(REGION) $(OPTIONS)

check: .venv/.installed-dev  ## Lint, types, the import rule, the links of the manual
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@# One link per part, so that mypy, which runs no import hooks, sees `orthotrace.*`.
	@mkdir -p .typing/orthotrace
	@ln -sfn $(addprefix ../../,mapping tiling models distributed __init__.py __main__.py py.typed) .typing/orthotrace/
	$(BIN)/mypy
	$(BIN)/python -m pytest --quiet tests/test_layout.py tests/test_docs.py

clean:  ## Remove .venv and what checks left; data/ stays
	rm -rf .venv .typing .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
		{ echo "OrthoTrace needs Python 3.11 to 3.13, and $(PYTHON) is another: make PYTHON=python3.12 ..." >&2; exit 2; }
	$(PYTHON) -m venv .venv

.venv/.installed: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) --editable '.[weights]'
	@touch $@

.venv/.installed-dev: .venv/.installed
	$(INSTALL) --editable '.[weights,dev]'
	@touch $@
