"""The linear-time MMD against the double sum."""

import time

import numpy as np
import pytest

from privpost.evaluation.mmd import TERMS, embedding_sum, mmd2


def double_sum(p, q):
    """The unbiased estimate as printed in the paper: all pairs i ≠ j."""
    m, total = len(p), 0.0
    for start in range(0, m, 500):
        rows = slice(start, start + 500)
        pp, qq, pq = (np.exp(-((a[rows, None] - b) ** 2) / 2) for a, b in ((p, p), (q, q), (p, q)))
        off = np.arange(m)[rows, None] != np.arange(m)
        # Over all pairs k(p_j, q_i) sums to what k(p_i, q_j) does.
        total += ((pp + qq - 2 * pq) * off).sum()
    return total / (m * (m - 1))


@pytest.mark.parametrize("m", [2, 3, 50, 700])
@pytest.mark.parametrize("shift", [0.0, 0.1, 1.0])
def test_estimate_is_the_double_sum_to_rounding(m, shift):
    rng = np.random.default_rng(m)
    p, q = rng.random(m) * (1 - shift), shift + rng.random(m) * (1 - shift)
    # 1e-12: the project's bar is 1e-9; the rounding of sums of m features is what is left.
    assert mmd2(p, q) == pytest.approx(double_sum(p, q), abs=1e-12)


def test_error_and_speed_at_5000_draws():
    rng = np.random.default_rng(1)
    p, q = rng.beta(30, 40, 5000), rng.beta(33, 40, 5000)
    times = []
    for estimate in (mmd2, double_sum):
        start = time.process_time()
        value = estimate(p, q)
        times.append((time.process_time() - start, value))
    assert abs(times[0][1] - times[1][1]) < 1e-9
    # The bar; the ratio is above 500 on an idle machine.
    assert times[1][0] > 20 * times[0][0]


def test_estimates_are_unbiased_and_negative_ones_are_kept():
    rng = np.random.default_rng(2)
    values = mmd2(rng.beta(5, 5, (50, 4000)), rng.beta(5, 5, (50, 4000)))
    assert (values < 0).mean() > 0.4
    assert abs(values.mean()) < 5 * values.std() / np.sqrt(4000)
    # Two laws with a known distance: points at a and b, MMD² = 2 − 2 exp(−(a−b)²/2).
    assert mmd2(np.full(10, 0.2), np.full(10, 0.9)) == pytest.approx(2 - 2 * np.exp(-0.49 / 2), abs=1e-12)


def test_parts_of_a_sample_add_and_trials_are_apart():
    rng = np.random.default_rng(3)
    p, q = rng.random((40, 6)), rng.random((40, 6))
    parts = sum(embedding_sum(p[part]) for part in (slice(0, 13), slice(13, 40)))
    assert parts.shape == (TERMS, 6)
    assert np.allclose(parts, embedding_sum(p), atol=1e-13)
    assert np.allclose(mmd2(p, q), [mmd2(p[:, j], q[:, j]) for j in range(6)], atol=1e-13)


def test_errors_name_the_setting():
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        embedding_sum([0.5, 1.1])
    with pytest.raises(ValueError, match="3 and 4 draws"):
        mmd2(np.zeros(3), np.zeros(4))
    with pytest.raises(ValueError, match="size is 1"):
        mmd2(np.zeros(1), np.zeros(1))
