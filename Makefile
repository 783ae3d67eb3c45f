# make setup | demo | test | accept | blender | engines | sweep | lint | docs | bench
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
ENGINES ?= physx newton genesis
BENCH   ?= --out benchmarks/latest.json
SWEPT   ?= bullet,physx,newton,genesis
SWEEP   ?= pendulum/1,bouncing_ball,textile_bending/1/oxford,foam_stretching/1/soft

.PHONY: setup demo test accept blender engines sweep lint docs bench clean

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

# Blender and engines live in environments of their own; of what cannot be had, tests are skipped.
accept: $(STAMP)
	-@$(MAKE) --no-print-directory blender
	@$(MAKE) --no-print-directory engines
	$(BIN)/pytest -q -n 2 --dist worksteal -m accept

blender: $(STAMP)
	@tools/system-libraries blender
	$(BIN)/wmeval install blender

engines: $(STAMP)
	@for name in $(ENGINES); do \
	  $(BIN)/wmeval install $$name || echo "engine $$name cannot be had: its tests are skipped"; \
	done

# A few cells on every engine, the shortest of each kind twice: rigid, textile, volume. What no cell
# says is an error. What the engines give of what is asked (the suite, which takes minutes) is tested
# in part by `make accept`.
sweep: $(STAMP)
	$(BIN)/wmeval sweep gauge --engines $(SWEPT) --tasks $(SWEEP) \
	  --config published-settings --twice first --no-conformance --workers 2 --limit 300 \
	  --out runs/sweep --overwrite
	$(BIN)/python tools/whole_sweep.py runs/sweep --engines $(SWEPT) --tasks $(SWEEP)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(STAMP)
	$(BIN)/python docs/build.py
	$(BIN)/mkdocs build --strict --quiet --site-dir site

bench: $(STAMP)
	$(BIN)/python -m benchmarks $(BENCH)

clean:
	rm -rf $(VENV) site runs .pytest_cache .mypy_cache .ruff_cache
