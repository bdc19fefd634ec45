"""Compiled loops of `truncated_dirichlet.exact`."""

import math

from privpost.samplers.compiled import bare, inner, outer
from privpost.samplers.incomplete_gamma import beyond, tail_of

# Each fixed-point step multiplies the rate's error by about K·low; up to this value of K·low three steps are enough.
_FEW_STEPS = 0.26


@inner
def _rate(alpha, low):
    """Return a rate c at which the means of the truncated gamma proposals sum to about 1."""
    # A truncated gamma law has the mean (α + h)/c, with h as in `beyond` at t = c·low.
    total = alpha.sum()
    rate = total / (1 - 0.5 * len(alpha) * low)
    if len(alpha) * low > _FEW_STEPS:
        return _balanced(alpha, low, total, rate)
    for _ in range(3):
        t = rate * low
        if t <= 0:
            return total
        hazard, log_t, log_share = 0.0, math.log(t), math.log(t / (1 + t))
        for shape in alpha:
            if shape == 1:
                hazard += t
            elif t < 2:
                # This h is exact at shapes 1 and 2, and much cheaper than `beyond`. Draws are exact at any rate.
                hazard += t * math.exp((shape - 1) * log_share)
            else:
                hazard += beyond(shape, t, shape * log_t - t - math.lgamma(shape))[1]
        rate = total + hazard
    return rate


@inner
def _balanced(alpha, low, total, rate):
    """Return the rate of `_rate` to nine digits, by Newton's method within a bracket."""
    least, most = total, math.inf
    for _ in range(100):
        # If the means sum to more than 1, the rate must rise. dh/dt = h (h + α − t)/t.
        t, excess, slope = rate * low, total - rate, -1.0
        log_t = math.log(t)
        for shape in alpha:
            h = tail_of(shape, t, log_t, math.lgamma(shape))[1]
            excess += h
            slope += low * h * (h + shape - t) / t
        if abs(excess) <= 1e-9 * rate:
            break
        if excess > 0:
            least = rate
        else:
            most = rate
        rate -= excess / slope
        if not least < rate < most:
            rate = 0.5 * (least + most) if most < math.inf else 2 * least
    return rate


@bare
def _gamma_beyond(shape, t, rng):
    """Return a Gamma(shape, 1) variate of at least t ≥ 0, and the number of random variates used."""
    if shape == 1:
        return t + rng.standard_exponential(), 1
    variates = 0
    while t <= shape:
        variates += 1
        draw = rng.standard_gamma(shape)
        if draw >= t:
            return draw, variates
    while True:
        # The proposal is exponential. Its log-density is tangent to the log-density of the gamma law at t.
        variates += 2
        excess = rng.standard_exponential() / (t - shape + 1)
        if -rng.standard_exponential() <= (shape - 1) * (math.log1p(excess) - excess):
            return t * (1 + excess), variates


@outer(seconds=3)
def draw_rows(alpha, low, rng, draws):
    """Write one draw of `exact.sample` per row to `draws` (rows, K), and return the number of random variates used."""
    n_rows, n_levels = alpha.shape
    variates = 0
    for row in range(n_rows):
        alphas, out, least = alpha[row], draws[row], low[row]
        largest = int(alphas.argmax())
        if alphas[largest] == 1:
            total = 0.0
            for i in range(n_levels):
                out[i] = rng.standard_exponential()
                total += out[i]
            for i in range(n_levels):
                out[i] = least + (1 - n_levels * least) * out[i] / total
            variates += n_levels
            continue
        rate, power = _rate(alphas, least), alphas[largest] - 1
        # `peak` is ln f at the maximum of f, which lies at `mode`; power > 0, so mode > 0.
        mode = min(max(power / rate, least), 1 - (n_levels - 1) * least)
        peak, most = power * math.log(mode) - rate * mode, 1 - least
        while True:
            total_drawn = 0.0
            for i in range(n_levels):
                if i != largest:
                    draw, number = _gamma_beyond(alphas[i], rate * least, rng)
                    variates += number
                    out[i] = draw / rate
                    total_drawn += out[i]
                    # Too little is left for x_K.
                    if total_drawn > most:
                        break
            variates += 1
            rest = 1 - total_drawn
            if rest >= least and -rng.standard_exponential() <= power * math.log(rest) - rate * rest - peak:
                out[largest] = rest
                break
    return variates
