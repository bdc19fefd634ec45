"""Calibration of noise-aware and other posteriors (Bernstein and Sheldon 2018, figures 1a and 1b).

In every trial θ is drawn from the prior, data from the model and a release from the mechanism; U is the quantile of
the true θ in the posterior. Where the posterior is known in closed form so is U; for the Gibbs sampler and OPS it is
the share of draws at most θ.

Ranks among independent draws would be exactly uniform. Successive Gibbs draws depend on each other, which moves mass of
U to both ends and adds up to about 1 / (2 · effective sample size of one chain) to the KS statistic. At ε = 0.1 that is
below 0.004. At ε = 0.01 `convergence` finds chains of 14 (exponential), 24 (normal), 49 (multinomial) and 86 (binomial)
effective draws at the worst n, hence up to 0.036, 0.021, 0.010 and 0.006 against a limit of 0.043 at 1000 trials. The
statistic tests the sampler as it is run, its autocorrelation included, not its stationary law alone.
"""

from __future__ import annotations

import numpy as np

from privpost.evaluation.calibration import cdf_band, empirical_cdf, ks_limit, ks_p_value, ks_statistic
from privpost.evaluation.claims import Claim, Why, from_checks
from privpost.mechanisms.exponential import ExponentialMechanism
from privpost.models.beta_bernoulli import BetaBernoulli
from privpost.pipeline.schema import Choice, Integer, Real, Schema, Text, Vector
from privpost.privacy.accounting import Cost
from privpost.samplers.noise_aware_exact import posterior_cdf
from privpost.samplers.noise_aware_gibbs import run
from privpost.studies.bernstein2018.trials import VARIANTS, Data, Experiment, Release, experiment

SETTINGS = Schema(
    model=Text(),
    prior=Vector(Real()),
    variant=Choice(*VARIANTS),
    burn_in=Integer(at_least=0),
    draws=Integer(at_least=1),
    ops_draws=Integer(at_least=1),
    a0=Real(above=0, below=0.5),
    ecdf_n=Integer(at_least=1),
    ecdf_epsilon=Real(above=0),
    ecdf_points=Integer(at_least=2),
    n=Integer(at_least=1),
    epsilon=Real(above=0),
)
METHODS = ("non_private", "gibbs", "naive", "ops", "exact")
LEVEL = 0.05


def gibbs_quantiles(
    run_experiment: Experiment, data: Data, release: Release, n: int, burn_in: int, draws: int, rng
) -> tuple[np.ndarray, float]:
    """Return the share of Gibbs draws at most θ, shape (parameters, trials), and the share of rejected proposals."""
    below = np.zeros(data.theta.shape)

    def consume(theta):
        below.__iadd__((theta.reshape(len(theta), *data.theta.shape) <= data.theta).sum(axis=0))

    proposals = run(run_experiment.kernel(data, release, n), rng, burn_in, draws, consume)
    return below / draws, proposals.rejected_share


def ops_quantiles(config, data: Data, n: int, epsilon: float, rng) -> np.ndarray:
    """Return the share of OPS draws at most θ, shape (1, trials): each of the draws may cost an equal part of ε."""
    mechanism = ExponentialMechanism(BetaBernoulli(*config.prior), n, epsilon / config.ops_draws, a0=config.a0)
    statistics = np.broadcast_to(data.statistics.T, (config.ops_draws, *data.statistics.T.shape))
    return (mechanism.perturb(statistics, rng) <= data.theta[0]).mean(axis=0)[None]


def simulate(config, streams, ledger) -> dict:
    """Return `quantiles` (method, parameter, n, epsilon, trials) and `rejected` (method, n, epsilon).

    Methods that do not apply to a model are nan. `rejected` is the share of the Gibbs sampler's proposals that are no
    valid statistics, and of the naive method's releases that had to be projected.
    """
    trial = experiment(config.model, config.prior, config.variant)
    shape = (len(METHODS), len(trial.parameters), len(config.n), len(config.epsilon), config.trials)
    quantiles = np.full(shape, np.nan)
    rejected = np.full((len(METHODS), len(config.n), len(config.epsilon)), np.nan)
    row = {method: i for i, method in enumerate(METHODS)}
    binary = config.model == "binomial"
    _account(config, trial, ledger)
    shares: dict[tuple, list] = {}
    for i, n in enumerate(config.n):
        for block in streams.blocks():
            data = trial.data(n, block.size, streams("data", block.index, n=n))
            quantiles[row["non_private"], :, i, :, block.trials] = trial.quantiles(data, data.statistics)[:, None]
            releases = []
            for j, epsilon in enumerate(config.epsilon):
                point = {"n": n, "epsilon": epsilon}
                release = trial.release(data, n, epsilon, streams("mechanism", block.index, **point))
                releases.append(release)
                sampler = streams("sampler", block.index, **point)
                result = gibbs_quantiles(trial, data, release, n, config.burn_in, config.draws, sampler)
                quantiles[row["gibbs"], :, i, j, block.trials] = result[0]
                shares.setdefault(("gibbs", i, j), []).append(result[1])
                statistics, projected = trial.naive(data, release, n)
                quantiles[row["naive"], :, i, j, block.trials] = trial.quantiles(data, statistics)
                shares.setdefault(("naive", i, j), []).append(projected)
                if binary:
                    rng = streams("mechanism", block.index, method="ops", **point)
                    quantiles[row["ops"], :, i, j, block.trials] = ops_quantiles(config, data, n, epsilon, rng)
            if binary:
                values = np.stack([release.values[0] for release in releases])
                scales = [release.scale for release in releases]
                quantiles[row["exact"], 0, i, :, block.trials] = posterior_cdf(
                    config.prior, values, data.theta[0], n, scales
                )
    for (method, i, j), values in shares.items():
        rejected[row[method], i, j] = np.mean(values)
    return {"quantiles": quantiles, "rejected": rejected}


def _account(config, trial: Experiment, ledger) -> None:
    """Enter each point's releases: Gibbs, naive and exact read one release, OPS makes its own."""
    for n in config.n:
        for epsilon in config.epsilon:
            point = f"n={n}/epsilon={epsilon:g}"
            costs: dict[str, tuple[Cost, int]] = {"gibbs": (Cost("pure", epsilon), 1)}
            if trial.naive_cost(epsilon) != costs["gibbs"][0]:
                costs["naive"] = (trial.naive_cost(epsilon), 1)
            if config.model == "binomial":
                costs["ops"] = (Cost("pure", epsilon / config.ops_draws), config.ops_draws)
            for method, (cost, releases) in costs.items():
                account = f"{method}/{point}"
                ledger.open(account, Cost("pure", epsilon if method != "naive" else cost.epsilon))
                ledger.charge(account, cost, releases)


def _is_private(method: str, trial: Experiment) -> bool:
    """Whether a method's posterior costs a finite ε; bounds from the true θ are a matter of their own."""
    if method == "non_private":
        return False
    return method != "naive" or bool(np.isfinite(trial.naive_cost(1.0).epsilon))


def statistics_rows(cells) -> list[dict]:
    """Return one row per (cell, method, parameter, n, ε) that has quantiles: its KS statistic, limit and p-value.

    `sampling` is `mcmc` where U comes from a chain, `exact` where it comes from a distribution function or from
    independent exact draws; `private` is false where a method reads what no finite ε covers.
    """
    rows = []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        trial = experiment(config.model, config.prior, config.variant)
        limit = ks_limit(config.trials)
        for m, method in enumerate(METHODS):
            for p, parameter in enumerate(trial.parameters):
                for i, n in enumerate(config.n):
                    for j, epsilon in enumerate(config.epsilon):
                        values = arrays["quantiles"][m, p, i, j]
                        if np.isnan(values).any() or (method == "non_private" and j > 0):
                            continue
                        statistic = float(ks_statistic(values))
                        rows.append(
                            {
                                "variant": config.variant,
                                "model": config.model,
                                "parameter": parameter,
                                "n": n,
                                "epsilon": None if method == "non_private" else epsilon,
                                "method": method,
                                "sampling": "mcmc" if method == "gibbs" else "exact",
                                "private": _is_private(method, trial),
                                "ks": statistic,
                                "ks_limit": limit,
                                "p_value": float(ks_p_value(statistic, config.trials)),
                                "n_trials": config.trials,
                                "rejected_share": arrays["rejected"][m, i, j],
                                "uses_private_metadata": trial.uses_private_metadata,
                            }
                        )
    return rows


def tabulate(cells):
    """Return the KS statistics (`calibration`) and the distribution functions of U at one n and ε (`ecdf`)."""
    import pandas as pd

    return {"calibration": pd.DataFrame(statistics_rows(cells)), "ecdf": pd.DataFrame(_ecdf_rows(cells))}


def _ecdf_rows(cells) -> list[dict]:
    rows = []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        trial = experiment(config.model, config.prior, config.variant)
        points = np.round(np.linspace(0, 1, config.ecdf_points), 12)
        low, high = cdf_band(points, config.trials)
        i, j = config.n.index(config.ecdf_n), config.epsilon.index(config.ecdf_epsilon)
        for m, method in enumerate(METHODS):
            for p, parameter in enumerate(trial.parameters):
                values = arrays["quantiles"][m, p, i, j]
                if np.isnan(values).any():
                    continue
                curve = empirical_cdf(values, points)
                fixed = {"variant": config.variant, "model": config.model, "parameter": parameter, "n": config.ecdf_n}
                fixed |= {"epsilon": None if method == "non_private" else config.ecdf_epsilon, "method": method}
                rows += [
                    {**fixed, "u": u, "ecdf": f, "band_low": a, "band_high": b}
                    for u, f, a, b in zip(points, curve, low, high, strict=True)
                ]
    return rows


def claims(tables) -> list[Claim]:
    """Score B1 to B4; B8 needs the finer test of `truncation` as well."""
    table, ecdf = tables["calibration"], tables["ecdf"]
    return [
        _gibbs_calibrated(table),
        _naive_miscalibrated(table),
        _ops_miscalibrated(table),
        _shapes(ecdf),
    ]


def excesses(table, method: str):
    """Return a method's rows with the KS statistic of the non-private method at the same point, `reference`."""
    keys = ["variant", "model", "parameter", "n"]
    reference = table[table.method == "non_private"][[*keys, "ks"]].rename(columns={"ks": "reference"})
    return table[table.method == method].merge(reference, on=keys)


def calibration_by_model(table, variant: str) -> tuple[dict[str, bool], dict]:
    """Return one check per model of a variant, that Gibbs is calibrated where the true posterior is, and its evidence.

    θ and data are shared across ε, so the (model, n) blocks are the units. Rows count where the non-private KS
    statistic is within its 95 % limit; a block is beyond when any Gibbs statistic in it leaves the limit. A calibrated
    method's block does so with probability at most 5 % times its number of statistics (union bound, whatever their
    dependence), and blocks are independent. A model fails when its number of blocks beyond has a binomial tail below
    half of 5 % / number of models, or its smallest p-value is below that over its number of statistics.
    """
    from scipy.stats import binom

    rows = excesses(table[table.variant == variant], "gibbs")
    rows = rows[rows.reference <= rows.ks_limit]
    level = LEVEL / (2 * max(1, rows.model.nunique()))
    checks, evidence = {}, {"level of each of a model's two tests": level}
    for model, group in rows.groupby("model"):
        blocks = (group.ks > group.ks_limit).groupby(group.n).agg(["any", "size"])
        beyond, rate = int(blocks["any"].sum()), min(1.0, LEVEL * int(blocks["size"].max()))
        tail = float(binom.sf(beyond - 1, len(blocks), rate))
        worst = group.loc[group.ks.idxmax()]
        where = f"n={worst.n:g}, epsilon={worst.epsilon:g}, {worst.parameter}"
        evidence[f"blocks beyond the limit, blocks, statistics, {model}"] = [beyond, len(blocks), len(group)]
        evidence[f"binomial tail at rate {rate:g} per block, {model}"] = tail
        evidence[f"KS and p-value beyond the limit, {model}"] = {
            f"n={row.n:g}, epsilon={row.epsilon:g}, {row.parameter}": [float(row.ks), float(row.p_value)]
            for row in group[group.ks > group.ks_limit].itertuples()
        }
        evidence[f"largest KS and its p-value, {model} ({where})"] = [float(worst.ks), float(worst.p_value)]
        name = f"{model}: neither too many blocks beyond the limit nor too small a p-value"
        checks[name] = tail >= level and bool((group.p_value >= level / len(group)).all())
    return checks, evidence


def _gibbs_calibrated(table) -> Claim:
    statement = "Gibbs is as well calibrated as the non-private posterior."
    test = (
        "per model, where the non-private KS statistic is within its 95 % limit: binomial tail of the number of n with "
        "a Gibbs statistic beyond the limit, at the union bound of 5 % per statistic of a block, not below 2.5 % / "
        "number of models, and no p-value below that over the model's number of statistics; U is the share of draws of "
        "one chain, whose autocorrelation adds up to about 1/(2 ESS) to the statistic and is part of what is tested"
    )
    place = "section 4, figure 1a"
    checks, evidence = calibration_by_model(table, "paper")
    evidence["95 % limit of a KS statistic"] = float(table.ks_limit.max())
    if not checks:
        return Claim("B1", place, statement, test, "not testable", reason="no rows to compare")
    beyond, blocks, _ = evidence.get("blocks beyond the limit, blocks, statistics, exponential", (0, 0, 0))
    whys = [
        Why(
            "The exponential's bounds are quantiles of the model at the true rate, so that even a correct posterior is "
            f"not calibrated under them, and its segments are taken as independent; {beyond} of {blocks} values of n "
            "lie beyond the limit. B10 takes the two apart; few effective draws of the chain may add to it.",
            ("exponential:*",),
            "docs/bernstein2018.md#is-u-uniform-calibration-figures-1a-and-1b",
        )
    ]
    return from_checks("B1", place, statement, test, checks, evidence, whys=whys)


def _naive_miscalibrated(table) -> Claim:
    rows = table[(table.method == "naive") & table.parameter.isin(["theta", "theta_1"])]
    checks, evidence = {}, {}
    low_n, high_n = rows.n.min(), rows.n.max()
    low, high = rows.epsilon.min(), rows.epsilon.max()
    for (model, variant), group in rows.groupby(["model", "variant"]):
        at = group.set_index(["n", "epsilon"])
        worst, better_n = at.loc[(low_n, low)], at.loc[(high_n, low)]
        better_epsilon, best = at.loc[(low_n, high)], at.loc[(high_n, high)]
        name = f"{model}, {variant}"
        evidence[f"KS at the corners, {name}"] = [float(r.ks) for r in (worst, better_n, better_epsilon, best)]
        evidence["95 % limit of a KS statistic"] = float(worst.ks_limit)
        # The difference of two empirical distribution functions of M values is within this with 95 %.
        noise = float(worst.ks_limit) * np.sqrt(2)
        checks[f"miscalibrated at the smallest n and epsilon ({name})"] = bool(
            worst.p_value < 0.05 / (2 * rows.model.nunique())
        )
        checks[f"improves with n ({name})"] = bool(worst.ks - better_n.ks > noise)
        checks[f"improves with epsilon ({name})"] = bool(worst.ks - better_epsilon.ks > noise)
    return from_checks(
        "B2",
        "section 4, figure 1a",
        "The naive method is miscalibrated at small n and epsilon and improves with both.",
        "per model: KS at the smallest n and epsilon beyond the Bonferroni limit, and larger than at the largest n and "
        "than at the largest epsilon by more than 1.358 √(2/M); corners in the order (n, ε) low-low, high-low, "
        "low-high, high-high",
        checks,
        evidence,
        variant=", ".join(sorted(rows.variant.unique())),
    )


def _ops_miscalibrated(table) -> Claim:
    rows = table[table.method == "ops"]
    share = float((rows.p_value < 0.05 / max(1, len(rows))).mean()) if len(rows) else 0.0
    return from_checks(
        "B3",
        "section 4, figure 1a",
        "OPS is calibrated at no n and epsilon.",
        "every KS statistic has a p-value below 5 % / number of points (Bonferroni)",
        {f"n={row.n:g}, epsilon={row.epsilon:g}": bool(row.p_value < 0.05 / len(rows)) for row in rows.itertuples()},
        {
            "smallest KS": float(rows.ks.min()),
            "largest KS": float(rows.ks.max()),
            "95 % limit of a KS statistic": float(rows.ks_limit.max()),
            "share miscalibrated": share,
        },
    )


def _shapes(ecdf) -> Claim:
    checks, evidence = {}, {}
    # The outer tenths and the middle half: 0.2 and 0.5 of the values if U is uniform.
    for (method, model, variant), rows in ecdf[ecdf.parameter.isin(["theta", "theta_1"])].groupby(
        ["method", "model", "variant"]
    ):
        if method not in ("naive", "ops"):
            continue
        u, f = rows.sort_values("u").u.to_numpy(), rows.sort_values("u").ecdf.to_numpy()
        tenth, quarter, three_quarters, nine_tenths = np.interp([0.1, 0.25, 0.75, 0.9], u, f)
        # Twice the KS limit bounds the sampling error of any difference of two values of the function.
        noise = 2 * float((rows.band_high - rows.u)[(rows.u > 0.4) & (rows.u < 0.6)].iloc[0])
        outer, middle = float(tenth + 1 - nine_tenths), float(three_quarters - quarter)
        evidence["95 % limit of the sampling error of a share"] = noise
        evidence[f"share in the outer tenths and in the middle half, {method}, {model}, {variant}"] = [outer, middle]
        if method == "naive":
            checks[f"naive piles up at 0 and 1 ({model}, {variant})"] = bool(
                outer > 0.2 + noise and min(tenth, 1 - nine_tenths) > 0.1
            )
        else:
            checks[f"ops piles up in the middle ({model}, {variant})"] = bool(middle > 0.5 + noise)
    return from_checks(
        "B4",
        "section 4, figure 1b",
        "At n = 1000, epsilon = 0.01 the naive U pile up at 0 and 1, those of OPS in the middle.",
        "share of U in the outer tenths above 0.2, or in the middle half above 0.5, by more than 2 · 1.358/√M",
        checks,
        evidence,
        variant=", ".join(sorted(ecdf.variant.unique())),
    )
