"""A study can be deleted: its folder and its YAML go, and plans, claims and documents of the rest are made.

One study a day, another each day; PRIVPOST_DELETED=all takes every one, or name some.
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from privpost.lab import grid
from privpost.report import scorecard

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "conf/study"
STUDIES = sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.glob("*/*.yaml"))
CHOSEN = os.environ.get("PRIVPOST_DELETED", "")
TODAY = [STUDIES[datetime.date.today().toordinal() % len(STUDIES)]]
# What a deletion leaves is looked at where nothing of the study is imported yet.
REST = """
import json
from pathlib import Path
from privpost.lab import grid, plan
from privpost.report import documents, scorecard

studies = grid.load_studies()
for study in studies:
    for name in ("study", "claims", "figures", "documents"):
        study.has(name) and study.module(name)
    plan.table_files(study), plan.figure_files(study), grid.expand(study)
scores = scorecard.table(scorecard.score(studies))
texts, problems = documents.rendered(documents.Published({study.name: study for study in studies}, Path(".")))
print(json.dumps([[study.name for study in studies], sorted(set(scores.study)), sorted(texts), problems]))
"""


@pytest.mark.parametrize("name", STUDIES if CHOSEN == "all" else CHOSEN.split(",") if CHOSEN else TODAY)
def test_the_rest_is_planned_scored_and_documented_without_a_study(clone, name):
    study = grid.load_study(name)
    claims = scorecard.read(ROOT / "results/scorecard.csv").query("study == @name").id
    shutil.rmtree(clone / f"src/privpost/experiments/{name}")
    (clone / f"conf/study/{name}.yaml").unlink()
    command, settings = [sys.executable, "-c", REST], {"cwd": clone.folder, "env": clone.environment()}
    done = subprocess.run(command, **settings, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    left, scored, texts, problems = json.loads(done.stdout.splitlines()[-1])
    assert left == [other for other in grid.study_names() if other != name]
    assert name not in scored and len(scored) > 20
    # A document that speaks of the study is to be rewritten; every other one is there.
    own = [name, *(f"{study.paper}/{part}" for part in (*study.tables, *study.figures)), *(f'"{id}' for id in claims)]
    for path in sorted((ROOT / "docs/templates").glob("*.md.in")):
        document = path.name.removesuffix(".md.in")
        module = ROOT / f"src/privpost/report/documents/{document}.py"
        text = path.read_text() + (module.read_text() if module.is_file() else "")
        assert document in texts or any(word in text for word in own), [line for line in problems if document in line]
