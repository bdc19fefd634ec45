#!/bin/bash
# A sweep as an array job: each task computes its shard of the cells, one after another in one process.
#   bash profiles/slurm/sweep.sh 40 study=<paper>/<study> key=a,b,... 'key=range(1,1001)'
# The first argument is the number of shards. Slurm's own variables choose the rest: SBATCH_ACCOUNT, SBATCH_PARTITION,
# SBATCH_TIMELIMIT; SBATCH_ARRAY_INX=7,12 submits those tasks again. When all tasks are done, `privpost -m` with the
# same words makes the sweep's table and figure.
#SBATCH --job-name=privpost
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=2000
#SBATCH --output=logs/sweep_%A_%a.log
set -eu
if [ -z "${SLURM_ARRAY_TASK_ID:-}" ]; then
    cd "$(dirname "$0")/../.."
    mkdir -p logs
    [ -n "${SBATCH_ARRAY_INX:-}" ] || export SBATCH_ARRAY_INX=1-$1
    exec sbatch "profiles/slurm/sweep.sh" "$@"
fi
shards=$1
shift
exec "${PRIVPOST_PYTHON:-.venv/bin/python}" -m privpost -m "$@" "shard=$SLURM_ARRAY_TASK_ID/$shards"
