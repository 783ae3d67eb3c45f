# make setup | demo | test | accept | blender | lint | docs | bench
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: setup demo test accept blender lint docs bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt tools/system-libraries
	@tools/system-libraries
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

demo: $(STAMP)
	$(BIN)/wmeval demo --out runs/demo

test: $(STAMP)
	$(BIN)/pytest -q -n 2 --dist worksteal -m "not accept"

# Blender lives in an environment of its own; where it cannot be had, its tests are skipped.
accept: $(STAMP)
	-@$(MAKE) --no-print-directory blender
	$(BIN)/pytest -q -n 2 --dist worksteal -m accept

blender: $(STAMP)
	@tools/system-libraries blender
	$(BIN)/wmeval install blender

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(STAMP)
	$(BIN)/python docs/build.py
	$(BIN)/mkdocs build --strict --quiet --site-dir site

bench: $(STAMP)
	$(BIN)/python -m benchmarks --out benchmarks/latest.json

clean:
	rm -rf $(VENV) site runs .pytest_cache .mypy_cache .ruff_cache
