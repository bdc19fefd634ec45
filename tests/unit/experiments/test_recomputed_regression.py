"""Private linear regression, computed a second time: splits, errors on the records left out, and the law of a draw."""

from __future__ import annotations

import math

import numpy as np
import pytest
from recomputed import mean_and_error, row, run, spied

from privpost.datasets import catalogue, prepared
from privpost.experiments.zhang2016.linear_regression import study
from privpost.lab.schema import SettingError

# Public bounds of the stand-in's columns and of its label.
BOUNDS = {
    "mother_age": (21, 35), "mother_age_at_first_birth": (12, 35), "mother_education": (0, 20), "children": (2, 12),
    "mother_hispanic": (0, 1), "first_two_same_sex": (0, 1), "mother_works": (0, 1),
}  # fmt: skip
MOST = 157438.02
NAME = "zhang2016/linear_regression"


@pytest.fixture
def records(monkeypatch) -> list[tuple[list[float], float]]:
    """30 records in place of the census: features, and labels of which some are beyond their bound."""
    rng = np.random.default_rng(8)
    columns = {name: rng.uniform(low, high, 30) for name, (low, high) in BOUNDS.items()}
    columns["children"][:3] = 15
    columns["income"] = 9000 * columns["mother_education"] + rng.normal(0, 30_000, 30)

    def read(name: str, dataset):
        assert dataset == catalogue.load(name)
        return columns

    monkeypatch.setattr(prepared, "read", read)
    found = []
    for i in range(30):
        features = [1.0]
        for name, (low, high) in BOUNDS.items():
            value = min(max(columns[name][i], low), high)
            features.append((value - low) / (high - low) * 2 - 1)
        found.append(([x / math.sqrt(8) for x in features], min(max(columns["income"][i], 0), MOST) / MOST))
    return found


def mean_square(weights, part) -> float:
    return sum((y - sum(w * x for w, x in zip(weights, features, strict=True))) ** 2 for features, y in part) / len(
        part
    )


def posterior(part, b: float, variance: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and precision of the weights by the normal equations of a part."""
    features, labels = np.array([x for x, _ in part]), np.array([y for _, y in part])
    precision, pull = b * np.eye(8) + features.T @ features / variance, features.T @ labels / variance
    return np.linalg.inv(precision) @ pull, precision


def splits(cell, records, size: int):
    """Training and test records of every trial, 18 and 12 of 30."""
    for block in range(cell.config.trials // size):
        rng = cell.streams("data", block)
        for _ in range(size):
            chosen = set(rng.choice(30, 18, replace=False, shuffle=False).tolist())
            yield [records[i] for i in sorted(chosen)], [records[i] for i in range(30) if i not in chosen]


def test_errors_are_those_on_the_records_that_did_not_train(records):
    """Sums over records decide; only rounding is left."""
    variances, precisions = [0.5, 2.0], [1, 4, 9]
    cell = run(
        NAME, 4, 2, train_share=0.6, radius_factor=10, feature_bound=1, label_bound=1, acceptance_draws=5,
        epsilon_target=242, method=["non_private", "sampler_record"], noise_variance=variances,
        prior_precision=precisions,
    )  # fmt: skip
    parts, table = list(splits(cell, records, 2)), cell.tables["linear_regression"]
    plain = table[table.method == "non_private"]
    assert len(plain) and plain[["epsilon", "radius", "acceptance", "proposal_acceptance", "excess_mean"]].isna().all(
        axis=None
    )
    assert all((len(train), len(test)) == (18, 12) for train, test in parts)
    residuals = []
    for train, _ in parts:
        weights = np.linalg.lstsq([x for x, _ in train], [y for _, y in train], rcond=None)[0]
        residuals.append(mean_square(weights, train))
    beyond = sum(y in (0, 1) for _, y in records) / 30
    assert beyond > 0
    for variance in variances:
        first: dict[str, list[float]] = {}
        for b in precisions:
            account = cell.ledger.of(f"sampler_record/noise_variance={variance:g}/prior_precision={b}")
            drawn = np.concatenate([release.values for _, release in account])
            means = [posterior(train, b, variance)[0] for train, _ in parts]
            errors = {"non_private": means, "sampler_record": drawn}
            errors = {
                name: [mean_square(w, test) for w, (_, test) in zip(own, parts, strict=True)]
                for name, own in errors.items()
            }
            for method, own in errors.items():
                kept = row(table, method=method, noise_variance=variance, prior_precision=b)
                rise = [a - b for a, b in zip(own, first.setdefault(method, own), strict=True)]
                assert (kept.mse_mean, kept.mse_sem) == pytest.approx(mean_and_error(own))
                assert (kept.rise_mean, kept.rise_sem) == pytest.approx(mean_and_error(rise))
                assert kept.mean_norm == pytest.approx(np.mean([math.sqrt(sum(w**2)) for w in means]))
                assert (kept.n_repeats, kept.clipped_share) == (4, pytest.approx(beyond))
                assert kept.residual_variance == pytest.approx(np.mean(residuals))
            radius = 10 / math.sqrt(b)
            excess = [a - b for a, b in zip(errors["sampler_record"], errors["non_private"], strict=True)]
            assert (kept.excess_mean, kept.excess_sem) == pytest.approx(mean_and_error(excess))
            # L = (Y + RX)²/(2σ²), of which a draw costs twice.
            assert (kept.epsilon, kept.radius) == pytest.approx(((1 + radius) ** 2 / variance, radius))
            shares = np.concatenate([release.info for _, release in account])
            assert kept.proposal_acceptance == pytest.approx(shares.mean())


@pytest.mark.parametrize("factor", [30.0, 2.5])
def test_a_draw_is_from_the_posterior_of_its_training_records_in_the_ball(monkeypatch, records, factor):
    """400 splits with a draw each: sums of squares are within 4.5 standard errors, which see 20 % of a variance.

    The draws that estimate the acceptance are known from their normal variates, along the axes of XᵀX.
    """
    scored, shares = spied(monkeypatch, study, "_scores"), []
    cell = run(
        NAME, 400, 400, train_share=0.6, radius_factor=factor, feature_bound=1, label_bound=1, acceptance_draws=50,
        epsilon_target=1e4, method=["sampler_record"], noise_variance=[0.3], prior_precision=[1],
    )  # fmt: skip
    drawn = cell.ledger.released("sampler_record/noise_variance=0.3/prior_precision=1")
    rng, squares, inside, sizes = np.random.default_rng(3), 0.0, [], []
    for weights, (train, _), call in zip(drawn, splits(cell, records, 400), scored, strict=True):
        mean, precision = posterior(train, 1, 0.3)
        values, axes = np.linalg.eigh(sum(np.outer(x, x) for x, _ in train))
        along = [axes.T @ mean + normal / np.sqrt(1 + values / 0.3) for normal in call.given[-1]]
        shares.append(np.mean([math.sqrt(sum(each**2)) <= factor for each in along]))
        root = np.linalg.cholesky(precision)
        squares += ((root.T @ (weights - mean)) ** 2).sum()
        free = mean + np.linalg.solve(root.T, rng.standard_normal((8, 50))).T
        lengths = np.sqrt((free**2).sum(axis=1))
        inside.append((lengths <= factor).mean())
        sizes.append((lengths[lengths <= factor] ** 2).mean())
    kept = row(cell.tables["linear_regression"], method="sampler_record")
    assert kept.acceptance == pytest.approx(np.mean(inside), abs=4.5 * math.sqrt(2 / 4 / 20_000))
    assert kept.acceptance == pytest.approx(np.mean(shares), abs=1e-9)
    lengths = (drawn**2).sum(axis=1)
    assert lengths.max() <= factor**2
    assert np.mean(lengths) == pytest.approx(np.mean(sizes), abs=4.5 * np.std(lengths) / 20 * 1.01)
    if factor > 10:
        # No mass is outside: 3200 squares of standard normal variates.
        assert kept.acceptance == 1
        assert squares / 3200 == pytest.approx(1, abs=4.5 * math.sqrt(2 / 3200))


@pytest.mark.parametrize("share", [0.01, 0.99])
def test_records_are_on_both_sides_of_a_split(records, share):
    with pytest.raises(SettingError, match="leaves none of 30 records on a side"):
        run(NAME, 4, 2, train_share=share)


def test_a_ball_that_costs_more_than_the_target_is_refused(records):
    """(1 + 10)²/0.5 = 242, which the test of errors is allowed."""
    with pytest.raises(SettingError, match=r"one draw costs 242 at noise_variance 0\.5 and prior_precision 1"):
        run(
            NAME, 4, 2, train_share=0.6, radius_factor=10, feature_bound=1, label_bound=1, epsilon_target=241,
            noise_variance=[0.5], prior_precision=[1],
        )  # fmt: skip
