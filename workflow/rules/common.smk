# What a rebuild consists of is worked out once, by the package; the rules only name it.
import gc
import os
import sys

from snakemake.exceptions import WorkflowError
from snakemake_interface_executor_plugins.settings import ExecMode

from privpost.lab import clock, ledgers, locks, warm
from privpost.lab.plan import PREPARED as PREPARED_FOLDER
from privpost.lab.plan import Plan, table_files
from privpost.lab.project import STATE, plainly
from privpost.lab.schema import SettingError
from privpost.report import build as overview
from privpost.report import documents

# Jobs and files by the thousand are made and stay: looking for garbage among them, and in the imports, is in vain.
gc.freeze()
gc.set_threshold(100_000, 50, 100)

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

# Jobs run in the Python that runs Snakemake; not a parameter, so that moving the environment reruns nothing.
os.environ["PRIVPOST_PYTHON"] = sys.executable


envvars:
    "PRIVPOST_PYTHON",


# Once there are jobs, those of this computer are forked from one process; a job's own Snakemake starts no further one.
if workflow.exec_mode == ExecMode.DEFAULT:

    onstart:
        os.environ["PRIVPOST_PYTHON"] = warm.start()


ENVIRONMENT = "../../environment.yml"

# A job of an executor parses this file too; only the Snakemake that was started by hand looks after the lock.
if workflow.exec_mode == ExecMode.DEFAULT:
    try:
        if locks.clear_left_over():
            print("A former run was killed and left its lock; the lock is removed.", file=sys.stderr)
        locks.hold_running()
    except OSError as error:
        raise WorkflowError(plainly(error)) from None

# --config scale=smoke, root=build/verify or studies=geumlek2017/logistic,... choose another rebuild.
try:
    PLAN = Plan(
        scale=config.get("scale", "paper"),
        root=config.get("root"),
        studies=config["studies"].split(",") if "studies" in config else None,
    )
except SettingError as error:
    # Without the stack of the package, which says nothing about the setting.
    raise WorkflowError(str(error)) from None
# --config batch=25: so many cells a job, for clusters.
BATCH = config.get("batch", 1)
# --config printed=1: figures also as PDF and PNG.
PRINTED = bool(config.get("printed"))
# Before the rules: an input function's error would come with a traceback, and Snakemake's own with its line in this file.
for target in sys.argv[1:]:
    if target.startswith(f"{PLAN.root}/cells/") and target not in PLAN.by_path:
        sys.exit(
            f"{target} is no cell of the grids in conf/study: privpost study=<paper>/<study> key=value computes any other"
        )
STUDIES = PLAN.studies
ROOT = next(iter(STUDIES.values())).config["root"]
WHERE = ["--scale", config.get("scale", "paper")] + (["--root", config["root"]] if "root" in config else [])
CELLS = list(PLAN.by_path)
TABLES = [str(path) for study in PLAN.standing for path in table_files(study)]
FIGURES = [str(path) for study in PLAN.standing for path in study.figure_paths(PRINTED)]
# Those that pages show, and that a clone has.
SHIPPED = [str(path) for study in PLAN.standing for path in study.shipped_figures()]
# What can be built of studies some of whose data sets cannot be had.
PARTIAL = [
    str(path)
    for study in PLAN.tabulated
    if study.left_out
    for path in [*table_files(study), *study.figure_paths(PRINTED)]
]
PREPARED = [f"{PREPARED_FOLDER}/{name}.npz" for name in PLAN.datasets]
# Scorecard, quoted numbers, README and report cover all studies.
WHOLE = "studies" not in config
SCORES = [str(path) for path in overview.score_files(PLAN.root)] if WHOLE else []
OVERVIEW = [str(path) for path in overview.figure_files(PLAN.figure_root)] if WHOLE else []
SHIPPED += OVERVIEW
README = [str(path) for path in documents.files()] if WHOLE and ROOT == "results" else []
REPORT = [str(overview.report_file(PLAN.root))] if WHOLE else []

if workflow.exec_mode == ExecMode.DEFAULT:
    RAW = [path for name in PLAN.datasets for path in PLAN.raw_files(name)]
    for path in filter(os.path.islink, CELLS):
        # Snakemake takes a link to nothing for a file that vanishes.
        if not os.path.exists(path):
            os.unlink(path)
            print(f"{path} was a link to nothing; it is removed.", file=sys.stderr)
    SOURCES = [*CELLS, *TABLES, *FIGURES, *PARTIAL, *PREPARED, *SCORES, *OVERVIEW, *README, *REPORT, *RAW]
    if ahead := clock.bring_back([*SOURCES, *STATE.rglob("*"), *overview.templates()]):
        print(
            f"{len(ahead)} files had times in the future, {ahead[0]} for one; they have the present time now.",
            file=sys.stderr,
        )
