"""From a CSV file to a private release and its posterior: `privpost release` on synthetic answers.

A notebook in plain Python: editors such as VS Code, Spyder and Jupyter (with jupytext) run it cell by cell at the
`# %%` marks, and `python examples/release.py` runs all of it, in a new folder `commute`.
"""

# %% [markdown]
# ## The data
# 400 answers, drawn here; a real file would come from a survey. The specification says what is public about them.

# %%
import csv
import json
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from privpost.__main__ import main
from privpost.models import DirichletCategorical

levels, shares = ["car", "train", "bicycle", "on foot"], [0.5, 0.3, 0.17, 0.03]
examples = Path(__file__).parent if "__file__" in globals() else Path("examples")
folder = Path("commute")
if folder.exists():
    raise SystemExit(f"The folder {folder} is there already: move it away, and its ledger with it.")
folder.mkdir()
shutil.copy(examples / "commute.yaml", folder)
answers = np.random.default_rng(20240607).choice(levels, size=400, p=shares)
with (folder / "answers.csv").open("w", newline="") as file:
    csv.writer(file).writerows([["commute"], *([answer] for answer in answers)])

# %% [markdown]
# ## The release
# This is `privpost release commute/commute.yaml --data commute/answers.csv --output commute/release.json`. It works
# only once: the file is not overwritten, and the ledger holds its cost.

# %%
specification, data, output = (str(folder / name) for name in ("commute.yaml", "answers.csv", "release.json"))
status = main(["release", specification, "--data", data, "--output", output])
release = json.loads(Path(output).read_text())
counts = release["statistics"]["counts"]["commute"]
print(f"released: {counts}, at epsilon {release['privacy']['epsilon']:g}")
print(f"noise: {release['privacy']['noise']['distribution']}, scale {release['privacy']['noise']['scale']:.0f}")

# %% [markdown]
# ## The posterior
# The draws account for the noise. An analysis that treats the noisy counts as exact is surer than the data allow, and
# may meet a negative count.

# %%
aware = np.array([release["posterior"]["draws"][f"P(commute = {level})"] for level in levels]).T
noisy = np.maximum([counts[level] for level in levels], 0)
model = DirichletCategorical((1, 1, 1, 1))
naive = model.sample(model.posterior(noisy), np.random.default_rng(1), 4000)

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
place = np.arange(len(levels))
for draws, shift, colour, marker, label in (
    (aware, -0.12, "#332288", "o", "noise-aware"),
    (naive, 0.12, "#E69F00", "s", "noise taken for data"),
):
    low, middle, high = np.quantile(draws, [0.025, 0.5, 0.975], axis=0)
    axes.errorbar(
        place + shift, middle, [middle - low, high - middle], fmt=marker, color=colour, capsize=3, label=label
    )
axes.plot(place, shares, "k_", markersize=28, label="true share (synthetic)")
axes.set(
    xticks=place,
    xticklabels=levels,
    ylabel="Share of people",
    title=f"Posterior medians and 95 % intervals, {release['privacy']['epsilon']:g}-DP",
)
axes.set_ylim(0, None)
axes.legend()
figure.savefig(folder / "posterior.png", dpi=150)
