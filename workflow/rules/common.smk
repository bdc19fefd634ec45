# The studies and their files, found by place; the rules only name them.
import os
import sys

from snakemake.exceptions import WorkflowError

from privpost.lab import grid, plan, provenance
from privpost.lab.project import PREPARED as PREPARED_FOLDER
from privpost.lab.project import built
from privpost.lab.published import expected_seconds
from privpost.lab.schema import SettingError

# Jobs run in the Python that runs Snakemake, one BLAS thread each.
os.environ.setdefault("PRIVPOST_PYTHON", sys.executable)
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"


envvars:
    "PRIVPOST_PYTHON",


ENVIRONMENT = "../../environment.yml"
SCALE = config.get("scale", "paper")
HOME = built(SCALE)
try:
    CHOSEN = grid.load_studies(config["studies"].split(",") if "studies" in config else None, SCALE, HOME)
except SettingError as error:
    raise WorkflowError(str(error)) from None
# A study is built from the data sets that can be had; one that has none of its own is left out.
STUDIES = plan.possible(CHOSEN)
TABLES = [path for study in STUDIES for path in plan.table_files(study)]
FIGURES = [path for study in STUDIES for path in plan.figure_files(study)]
DATASETS = plan.datasets(*CHOSEN)
PREPARED = [f"{PREPARED_FOLDER}/{name}.npz" for name in DATASETS]
# Scorecard, documents and report cover all studies.
WHOLE = "studies" not in config
SCORES = [f"{HOME}/results/scorecard.csv"] if WHOLE else []
# Documents speak of the paper's settings.
DOCUMENTS = plan.document_files(HOME) if WHOLE and SCALE == "paper" else []
REPORT = [f"{HOME}/report.html"] if WHOLE else []
OVERALL = SCORES + DOCUMENTS + REPORT
# The longest first.
SECONDS = {}
for (name, _), seconds in expected_seconds().items():
    SECONDS[name] = SECONDS.get(name, 0) + seconds
