# The two commands: `make reproduce` (everything, from raw data to figures) and `make test`.
# `make verify` rebuilds from an empty store and compares with what is shipped; `make clean` never touches that.
# Variables: STUDY=<paper>/<study> builds (or verifies) one study, CORES=4, SCALE=smoke, PYTHON=python3.12.
# BENCHMARKS=logistic measures some only.
PYTHON ?= python3
CORES ?= 2
SCALE ?= paper
STUDY ?=
BENCHMARKS ?=
RECORD ?=
RUN = .venv/bin/python -m

export PYTHON

.PHONY: reproduce test quick environment figures report docs smoke verify bench lint lock clean

# Times of this machine go to build/ and into the report; RECORD=1 ships them: results/timing, figures/measured, README.
reproduce: environment
	@$(if $(RECORD),PRIVPOST_RECORD=1) $(RUN) privpost reproduce $(STUDY) --scale $(SCALE) --cores $(CORES)

# RECORD=1 keeps the time in results/timing/run_test.json, and renders the README that quotes it.
test: environment
	$(RUN) pytest --numprocesses $(CORES) --dist loadfile --no-loadscope-reorder $(if $(RECORD),--record-time)

# While working: the unit tests that import what changed since the last commit, and one study at toy size.
quick: environment
	.venv/bin/python workflow/quick.py

environment:
	@workflow/environment.sh

figures: environment
	$(RUN) snakemake figures --cores $(CORES)

# One HTML file with everything inside: scorecard, figures, tables, settings, ledgers. Opens from disk.
report: environment
	@$(RUN) snakemake report --cores $(CORES) --quiet host reason && echo "The report is build/report.html."

# README, documents and an API reference as a site that opens from disk; a broken link stops it.
docs: environment
	@.venv/bin/python workflow/site.py && NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --quiet && echo "The site is build/site/html/index.html."

smoke: environment
	@$(RUN) privpost reproduce --scale smoke --cores $(CORES)

verify: environment
	@$(RUN) privpost verify $(STUDY) --cores $(CORES)

# Speed against its bars (some minutes): results/benchmarks.csv and figures/benchmarks.*. NumPyro takes part if it is
# installed: `uv pip install --python .venv/bin/python -e '.[bench]'`, or the same with .venv/bin/python -m pip.
bench: environment
	.venv/bin/python benchmarks/run.py $(BENCHMARKS)

lint: environment
	$(RUN) ruff check
	$(RUN) ruff format --check
	$(RUN) snakefmt --check Snakefile workflow
	$(RUN) snakemake --lint

# Resolve pyproject.toml anew (needs uv); commit the result.
lock:
	uv pip compile pyproject.toml --extra test --extra secure --extra slurm --extra docs --universal --python-version 3.11 --generate-hashes --no-header -o requirements.lock

# Removes what a rebuild makes again; never the shipped tables, figures or the raw data.
clean:
	rm -rf build logs .snakemake results/cells data/prepared
