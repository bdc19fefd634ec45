# The two commands: `make reproduce` (everything, from raw data to figures) and `make test`.
# `make verify` rebuilds from an empty store and compares with what is shipped; `make clean` never touches that.
# Variables: STUDY=<paper>/<study> builds (or verifies) one study, CORES=4, SCALE=smoke, PYTHON=python3.12.
# BENCHMARKS=logistic measures some only, BASELINE=<commit> times whole commands against those of that commit.
PYTHON ?= python3
CORES ?= 2
SCALE ?= paper
STUDY ?=
BENCHMARKS ?=
BASELINE ?=
RECORD ?=
RUN = .venv/bin/python -m

export PYTHON

.PHONY: help reproduce test quick environment figures report docs smoke verify bench lint dist lock clean

# Times of this machine go to build/ and into the report; RECORD=1 ships them: results/timing, figures/measured, README.
reproduce: environment ## everything, or one study: tables, figures, documents, report (STUDY= SCALE= CORES= RECORD=1)
	@$(if $(RECORD),PRIVPOST_RECORD=1) $(RUN) privpost reproduce $(STUDY) --scale $(SCALE) --cores $(CORES)

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /make \1\t/p' Makefile | expand -t 20

# One process more than cores: tests of interrupts and of Slurm wait most of their time.
# RECORD=1 keeps the time in results/timing/run_test.json, and renders the README that quotes it.
test: environment ## all tests (CORES=)
	$(RUN) pytest --numprocesses $$(($(CORES) + 1)) --dist loadfile --no-loadscope-reorder $(if $(RECORD),--record-time)

# While working: the unit tests that import what changed since the last commit, and one study at toy size.
quick: environment ## the tests of what changed, and one study at toy size
	.venv/bin/python workflow/quick.py

environment: ## make .venv from the lock, once
	@workflow/environment.sh

figures: environment ## redraw from the shipped tables, also as PDF and PNG
	$(RUN) snakemake figures --cores $(CORES) --config printed=1

# One HTML file with everything inside: scorecard, figures, tables, settings, ledgers. Opens from disk.
report: environment ## build/report.html: everything in one file
	@$(RUN) snakemake report --cores $(CORES) --quiet host reason && echo "The report is build/report.html."

# README, documents and an API reference as a site that opens from disk; a broken link stops it.
docs: environment ## the documents and the API as a site that opens from disk
	@.venv/bin/python workflow/site.py && NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --quiet && echo "The site is build/site/html/index.html."

smoke: environment ## everything at toy size, under build/smoke
	@$(RUN) privpost reproduce --scale smoke --cores $(CORES)

verify: environment ## rebuild from an empty store and compare with what is shipped (STUDY=)
	@$(RUN) privpost verify $(STUDY) --cores $(CORES)

# Speed against its bars (some minutes): results/benchmarks.csv and figures/benchmarks.*. NumPyro takes part if it is
# installed: `uv pip install --python .venv/bin/python -e '.[bench]'`, or the same with .venv/bin/python -m pip.
bench: environment ## measure speed against its bars, for some minutes (BENCHMARKS= BASELINE=)
	BASELINE=$(BASELINE) .venv/bin/python benchmarks/run.py $(BENCHMARKS)

lint: environment ## ruff, mypy, snakefmt and Snakemake's own checks
	$(RUN) ruff check
	$(RUN) mypy
	$(RUN) ruff format --check
	$(RUN) snakefmt --check Snakefile workflow
	$(RUN) snakemake --lint

dist: environment ## build the sdist and the wheel, check them, and try the wheel in an empty folder
	@workflow/distributions.sh

# Resolve pyproject.toml anew (needs uv); commit the result.
lock: ## resolve pyproject.toml anew; needs uv
	uv pip compile pyproject.toml --extra test --extra secure --extra slurm --extra docs --extra parquet --extra check --universal --python-version 3.11 --generate-hashes --no-header -o requirements.lock

# Removes what a rebuild makes again; never the shipped tables, figures or the raw data.
clean: ## remove stores, logs and builds; never shipped results or raw data
	rm -rf build logs .snakemake results/cells data/prepared
