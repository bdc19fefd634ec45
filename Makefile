# The two commands: `make reproduce` (everything, from raw data to build/, and the comparison with what is published) and
# `make test`. `make publish` copies what was built into results/ and figures/; nothing else writes to results/ and figures/.
# Variables: STUDY=<paper>/<study> or a paper, CORES=4, SCALE=smoke, FRESH=1 (from an empty store), PYTHON=python3.12.
# BENCHMARKS=logistic measures some only.
PYTHON ?= python3
CORES ?= 2
SCALE ?= paper
STUDY ?=
BENCHMARKS ?=
FRESH ?=
BASE ?= main
LIMIT ?= 0
RUN = .venv/bin/python -m

export PYTHON

.PHONY: help reproduce publish test quick mutants environment figures report docs smoke bench lint dist lock clean

reproduce: environment ## everything, a paper or a study, and compare with what is published (STUDY= SCALE= CORES= FRESH=1)
	@$(RUN) privpost reproduce $(STUDY) --scale $(SCALE) --cores $(CORES) $(if $(FRESH),--fresh)

publish: environment ## copy what was built into results/, figures/ and the documents (STUDY=)
	@$(RUN) privpost publish $(STUDY)

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /make \1\t/p' Makefile | expand -t 20

# One process more than cores: tests of interrupts and of Slurm wait most of their time.
test: environment ## all tests (CORES=)
	$(RUN) pytest --numprocesses $$(($(CORES) + 1)) --dist loadfile --no-loadscope-reorder

# While working: the unit tests that import what changed since the last commit, and one study at toy size.
quick: environment ## the tests of what changed, and one study at toy size
	.venv/bin/python tools/quick.py

environment: ## make .venv from the lock, once
	@tools/environment.sh

# By mutmut, some minutes a file: STUDY is a study, or a module such as mechanisms/laplace. Without it: the modules that
# differ from where the branch left BASE. LIMIT=300 ends it then; `.venv/bin/mutmut browse` shows what became of each.
mutants: environment ## which small faults does no quick test see, in a study, a module or what changed? (STUDY= BASE= LIMIT=)
	.venv/bin/python tools/mutants.py $(STUDY) --base $(BASE) --seconds $(LIMIT)

figures: environment ## draw the published tables, into build/published, also as PDF and PNG
	@$(RUN) privpost draw --printed

# One HTML file with everything inside: scorecard, figures, tables, settings, ledgers. Opens from disk.
report: environment ## build/published/report.html: everything that is published, in one file
	@$(RUN) privpost report

# README, documents and an API reference as a site that opens from disk; a broken link stops it.
docs: environment ## the documents and the API as a site that opens from disk
	@NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --quiet && echo "The site is build/site/html/index.html."

smoke: environment ## everything at toy size, under build/smoke
	@$(RUN) privpost reproduce --scale smoke --cores $(CORES)

# Speed beside peers (some minutes): results/benchmarks.csv. NumPyro takes part if it is installed:
# `uv pip install --python .venv/bin/python -e '.[bench]'`, or the same with .venv/bin/python -m pip.
bench: environment ## measure speed beside its peers', for some minutes (BENCHMARKS=)
	.venv/bin/python benchmarks/run.py $(BENCHMARKS)

lint: environment ## ruff, mypy, snakefmt and Snakemake's own checks
	$(RUN) ruff check
	$(RUN) mypy
	$(RUN) ruff format --check
	$(RUN) snakefmt --check Snakefile workflow
	$(RUN) snakemake --lint

dist: environment ## build the sdist and the wheel, check them, and try the wheel in an empty folder
	@tools/distributions.sh

# Resolve pyproject.toml anew (needs uv); commit the result.
lock: ## resolve pyproject.toml anew; needs uv
	uv pip compile pyproject.toml --extra test --extra secure --extra slurm --extra docs --extra check --universal --python-version 3.11 --generate-hashes --no-header -o requirements.lock

# Removes what a rebuild makes again; never what is published, nor the raw data.
clean: ## remove build, logs and prepared data; never what is published or raw data
	rm -rf build logs mutants .snakemake data/prepared
