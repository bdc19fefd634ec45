"""Release, infer and plot on an array: what the package does, on invented data.

A notebook in plain Python: editors such as VS Code, Spyder and Jupyter (with jupytext) run it cell by cell at the
`# %%` marks, and `python examples/own_data.py` runs it at once and writes own_data.png.
"""

# %% [markdown]
# ## The data
# One bit per person, invented here; their number is public. **Do not put real data in this place:** the noise below
# comes from numpy, can be repeated, and protects nobody. For real data there is `privpost release` (docs/release.md).

# %%
import matplotlib.pyplot as plt
import numpy as np

from privpost import BetaBernoulli, ConcentratedPosterior, Cost, LaplaceMechanism, Ledger

rng = np.random.default_rng(20240501)
data = (rng.random(400) < 0.3).astype(int)
n = len(data)

# %% [markdown]
# ## The model
# A uniform prior on the probability of a 1. Models know nothing of privacy: this is the posterior nobody may see.

# %%
model = BetaBernoulli(alpha=1, beta=1)
true_posterior = model.posterior(model.sufficient_statistics(data))

# %% [markdown]
# ## A budget and a ledger
# Every release about the data goes through the ledger, which refuses to overspend the account. Two releases follow:
# counts, under pure differential privacy, and a posterior draw, under Rényi differential privacy. The account is one
# of Rényi differential privacy of order 2, to which the first cost converts. Neighbours are data sets of equal size
# that differ in one record (substitution).

# %%
budget = Cost("rdp", epsilon=0.75, order=2)
ledger = Ledger()
ledger.open("survey", budget)

# %% [markdown]
# ## Release
# `calibrate` finds the least noise that the budget allows, without looking at data. The noisy counts are the release:
# whatever is computed from them costs nothing more.

# %%
mechanism = LaplaceMechanism.calibrate(model, n, Cost("pure", epsilon=0.5))
statistics = model.sufficient_statistics(data)
noisy_counts = ledger.release("survey", mechanism, statistics, rng).values
print(f"released: {noisy_counts.round(1)}, at {mechanism.cost()}")

# %% [markdown]
# ## Infer
# The conjugate update with the noisy counts, projected to what counts can be, takes the noise for data: it is narrower
# than it should be. The noise-aware posterior knows the noise's law. Both are computed from the release alone.

# %%
private_posterior = mechanism.posterior(noisy_counts)
naive = model.sample(private_posterior, rng, size=5000)
aware = mechanism.noise_aware_posterior(noisy_counts, 5000, rng)
for label, draws in (("noise taken for data", naive), ("noise-aware", aware)):
    low, high = np.quantile(draws, [0.025, 0.975])
    print(f"probability of a 1, {label}: {draws.mean():.3f}, 95 % interval {low:.3f} to {high:.3f}")

# %% [markdown]
# ## One posterior draw under Rényi differential privacy
# A sampler spends what it costs on a single draw: another draw would be another release.

# %%
sampler = ConcentratedPosterior.calibrate(model, n, Cost("rdp", epsilon=0.5, order=2))
one_draw = float(ledger.release("survey", sampler, statistics, rng).values)
print(f"one private draw: {one_draw:.3f}, at {sampler.cost()}")
print(f"both releases together: {ledger.spent('survey')}, of {budget}")

# %% [markdown]
# ## Plot

# %%
theta = np.linspace(0.001, 0.999, 600)
figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
for parameters, label, style in (
    (true_posterior, "true posterior (not released)", "--"),
    (private_posterior, f"Laplace counts taken for data, ε = {mechanism.cost().epsilon:g}", "-"),
):
    axes.plot(theta, np.exp(model.log_density(theta, parameters)), style, label=label)
axes.hist(aware, bins=30, density=True, histtype="step", color="C2", label="noise-aware, from the same counts (draws)")
axes.axvline(one_draw, color="C3", linestyle=":", label="one private draw, (2, 0.5)-RDP")
axes.set(xlabel="Probability of a 1", ylabel="Density", xlim=(0.1, 0.5))
figure.legend(loc="outside upper center")
figure.savefig("own_data.png", dpi=150)
