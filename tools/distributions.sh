#!/bin/sh
# Build the sdist and the wheel into build/dist, check their metadata, and try the installed wheel in an empty folder.
# There, privpost must list the studies, and run a cell and a sweep. The script looks for the plugins in the wheel,
# as the environment could also find the plugins in the checkout.
set -eu
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
rm -rf build/dist
$python -m build --no-isolation --outdir build/dist . >/dev/null
$python -m twine check --strict build/dist/*
$python -m zipfile -l build/dist/*.whl | grep hydra_plugins/privpost_store.py
elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
$python -m zipfile -e build/dist/*.whl "$elsewhere/installed"
mkdir "$elsewhere/empty"
cd "$elsewhere/empty"
export PYTHONPATH=$elsewhere/installed
$python -P -m privpost list | grep -c foulds2016
$python -P -m privpost study=foulds2016/efficiency scale=smoke
$python -P -m privpost -m study=foulds2016/efficiency scale=smoke p=0.1,0.2 | grep "2 cells"
$python -P -m privpost reproduce 2>&1 | grep "inside a checkout"
