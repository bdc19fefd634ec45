#!/bin/sh
# Make .venv from requirements.lock, with uv if it is installed, else with venv and pip. Every hash is checked.
# setuptools is installed first, since it builds packages that have no wheel.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

if ! command -v "$python" >/dev/null 2>&1; then
    echo "privpost needs Python 3.11, 3.12 or 3.13, but '$python' was not found. Install one, or name it: make PYTHON=/path/to/python3.12 ..." >&2
    exit 1
fi
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
case $version in
3.11 | 3.12 | 3.13) ;;
*)
    echo "privpost needs Python 3.11, 3.12 or 3.13, but '$python' is $version. Install one of them, or name it: make PYTHON=/path/to/python3.12 ..." >&2
    exit 1
    ;;
esac

# The package is installed in place, so that the environment belongs to this folder.
want="$version $(cat requirements.lock pyproject.toml | cksum) $PWD"
if [ -f .venv/privpost-lock ] && [ "$(cat .venv/privpost-lock)" = "$want" ]; then
    exit 0
fi

echo "Making .venv with Python $version from requirements.lock (about a minute) ..."
if [ -e .venv ] && [ ! -f .venv/privpost-lock ]; then
    before=.venv.before
    number=1
    while [ -e "$before" ]; do
        number=$((number + 1))
        before=.venv.before.$number
    done
    echo "There is a .venv that this project did not make; it is moved to $before." >&2
    mv .venv "$before"
fi
rm -rf .venv
build_tools() {
    awk '/^[a-zA-Z0-9]/ { wanted = /^setuptools==/ } wanted' requirements.lock
}
if command -v uv >/dev/null 2>&1; then
    # uv compiles bytecode only if it is told to. Without bytecode, every job starts slowly.
    uv venv --quiet --python "$python" .venv
    echo building >.venv/privpost-lock
    build_tools | uv pip install --quiet --python .venv/bin/python --require-hashes --compile-bytecode -r -
    uv pip install --quiet --python .venv/bin/python --require-hashes --compile-bytecode --no-build-isolation -r requirements.lock
    uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
else
    "$python" -m venv .venv
    echo building >.venv/privpost-lock
    build_tools >.venv/build-tools.lock
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv/build-tools.lock
    # Bytecode is compiled afterwards, on all cores.
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-build-isolation --no-compile -r requirements.lock
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
fi
PYTHONWARNINGS=ignore .venv/bin/python -m compileall -q -j 0 -x '/tests/' .venv/lib src
echo "$want" >.venv/privpost-lock
