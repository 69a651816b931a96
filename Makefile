# Each target makes its own .venv; nothing else needs to be there but Python 3.11+, make and a C library.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
PARALLEL := -n auto --maxprocesses 4

.PHONY: demo figures test test-attack test-crash test-portable lint bench bench-quick bench-check clean

demo: $(READY)  ## figure 1 in a small world: a table, a picture and a report
	$(BIN)/postserve reproduce figure1 --quick

figures: $(READY)  ## every figure of the paper, in full
	$(BIN)/postserve reproduce all

test: lint  ## the whole suite
	$(BIN)/python -m pytest $(PARALLEL)

test-attack: $(READY)  ## the attacks of docs/reliability.md at full length
	POSTSERVE_ATTACK=long $(BIN)/python -m pytest tests/attack -rP

test-crash: $(READY)  ## kills, power losses and bad requests to the service at full length
	POSTSERVE_CRASH=long $(BIN)/python -m pytest $(addprefix tests/service/test_,crash.py power.py bad_input.py)

test-portable: $(READY)  ## the suite as other processors would run it, one variant after another
	$(BIN)/python -m tests.portable $(PARALLEL)

lint: $(READY)  ## style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)  ## speed, ours and the peers', as ratios to references measured in the same run: out/bench
	$(BIN)/python -m benchmarks

bench-quick: $(READY)  ## the same in 3 minutes
	$(BIN)/python -m benchmarks --quick

bench-check: $(READY)  ## whether our ratios are still what benchmarks/committed.json says
	$(BIN)/python -m benchmarks.check

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python is %d.%d, wanted 3.11 or newer" % sys.version_info[:2])'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[all,dev]'
	touch $(READY)

clean:
	rm -rf .venv .bench out
