"""Who leads where, on events of a known hidden Markov model: the paper's sentences where the truth is known."""

from privpost.evaluation.rows import select
from privpost.experiments.claim_helpers import above, below
from privpost.lab.claims import check, claim, number, numbers, untestable

# Standard errors of a difference paired over trials.
THRESHOLD = 5.0
SPAN = ["levels", "n_fields", "true_states", "n_states", "persistence", "true_concentration"]
# How near a measured power has to be to the variance's.
RATE = 0.25
# How far from the crossover, as a factor, the sign has to be right.
FACTOR = 3.0
PLACE = "section 5, figure 6, on simulated events"


def hmm(table, **more):
    """Return the rows of hidden Markov models with the smallest number of states in the study."""
    rows = select(table, model="hmm", **more)
    return rows[rows.n_states == rows.n_states.min()]


def differences(pairs, **more):
    """Return paired losses with standard errors raised until what second chains change is within the threshold.

    So chains that have not converged decide nothing, unless the difference is larger than their disagreement.
    """
    rows = hmm(pairs, **more)
    return rows.assign(difference_sem=rows.difference_sem.clip(lower=rows.chain_gap.fillna(0.0) / THRESHOLD))


def leads(pairs, **more):
    """Return the losses of OPS less clipped Laplace's."""
    return differences(pairs, method="ops", first="paper", **more)


@claim(
    "F8-designed",
    PLACE,
    "Simulated events: where cells hold many events of a level, the HMM's Laplace release is ahead of OPS, most at "
    "small epsilon.",
    f"held-out loss, OPS less clipped Laplace, paired over data sets: at the most events per level above {THRESHOLD:g} "
    "standard errors at every epsilon and truncation, and largest at the smallest epsilon",
)
def dense(who_leads_pairs):
    rows = leads(who_leads_pairs)
    rows = rows[rows.events_per_level == rows.events_per_level.max()].sort_values("epsilon")
    for keys, part in rows.groupby([*SPAN, "truncation"]):
        name = named(keys)
        for row in part.itertuples():
            yield check(f"Laplace ahead at epsilon = {row.epsilon:g} ({name})", above(row, "difference", THRESHOLD))
        if len(part):
            gaps = part.difference_mean.to_numpy()
            yield check(f"its lead is largest at the smallest epsilon ({name})", gaps[0] == gaps.max() > 0)
            yield from extremes(f"lead of Laplace, {name}", part)


def extremes(words, rows):
    """Yield the largest and the smallest difference with their standard errors."""
    for which, place in (("largest", rows.difference_mean.idxmax()), ("smallest", rows.difference_mean.idxmin())):
        yield from number(f"{which} {words}", rows.difference_mean[place], rows.difference_sem[place])


def named(keys) -> str:
    """Return a setting in words, by its values of `SPAN` and of the truncation."""
    levels, fields, _, states, persistence, concentration, *truncation = keys
    words = f"{levels:g} levels, {fields:g} fields, {states:g} states, persistence {persistence:g}"
    words += f", concentration {concentration:g}"
    return ", ".join([words, *(f"M = {value:g}" for value in truncation)])


@claim(
    "F9-designed",
    PLACE,
    "Simulated events: where cells hold few events, OPS competes with the HMM's Laplace release.",
    f"at no more than one event per level and cell, at every epsilon, for at least one truncation, OPS's loss less "
    f"clipped Laplace's is not above {THRESHOLD:g} standard errors",
)
def sparse(who_leads_pairs):
    rows = leads(who_leads_pairs)
    rows = rows[rows.events_per_level <= 1]
    if rows.empty:
        return
    for keys, part in rows.groupby([*SPAN, "events_per_level", "epsilon"]):
        behind = above(part, "difference", THRESHOLD)
        name = f"{named(keys[:6])}, m = {keys[6]:g}"
        yield check(f"OPS not behind at epsilon = {keys[7]:g} ({name})", not behind.all())
    yield from extremes("lead of Laplace", rows)
    yield from numbers(
        {"settings with OPS ahead": int(below(rows, "difference", THRESHOLD).sum()), "settings": len(rows)}
    )


@claim(
    "F20-designed",
    "ours",
    "Simulated events: one sample of OPS is ahead of Gibbs sampling that pays for every update.",
    f"held-out loss, paid updates less OPS, paired over data sets: above {THRESHOLD:g} standard errors at each setting",
)
def paid(who_leads_pairs):
    rows = differences(who_leads_pairs, method="private_gibbs", first="ops")
    for keys, part in rows.groupby([*SPAN, "truncation"]):
        ahead = above(part, "difference", THRESHOLD)
        yield check(f"one sample of OPS is ahead ({named(keys)})", ahead.all())
        yield from number(f"share of settings with OPS ahead, {named(keys)}", ahead.mean())
        yield from extremes(f"lead of OPS, {named(keys)}", part)


@claim(
    "F25",
    "section 4.2",
    "The Laplace release is useful where aggregate statistics are large relative to the noise: there it is ahead of "
    "Gibbs sampling that pays for every update, and elsewhere not.",
    f"held-out loss, paid updates less clipped Laplace: above {THRESHOLD:g} standard errors where a level's events "
    f"in a cell exceed {FACTOR:g} noise scales 2D/epsilon, and not above where they are below a {FACTOR:g}rd of one",
)
def condition(who_leads_pairs):
    rows = differences(who_leads_pairs, method="private_gibbs", first="paper")
    signal = rows.events_per_level * rows.epsilon / (2 * rows.n_fields)
    ahead = above(rows, "difference", THRESHOLD)
    yield untestable("no setting is that far from the noise")
    for words, part, passed in (("is ahead beyond the noise", signal > FACTOR, True),
                                ("is not ahead below it", signal < 1 / FACTOR, False)):  # fmt: skip
        if part.any():
            share = float((ahead[part] == passed).mean())
            yield check(f"Laplace {words}, at every setting", share == 1)
            yield from number(f"share of settings where Laplace {words}", share)
            yield from extremes(f"lead of Laplace, of settings where Laplace {words}", rows[part])


@claim(
    "F26",
    "ours, of F8-why",
    "Laplace and OPS cross where a level has m = 4D²/(Δ epsilon) events in a cell.",
    f"sign of OPS's loss less clipped Laplace's beyond {THRESHOLD:g} standard errors: never against Laplace at more "
    f"than {FACTOR:g} times that m, never against OPS at less than a {FACTOR:g}rd of it, each truncation and setting",
)
def crossing(who_leads_pairs, who_leads):
    keys = [*SPAN, "events_per_level", "epsilon", "truncation"]
    known = select(who_leads, model="hmm", method="ops")[[*keys, "crossover"]]
    rows = leads(who_leads_pairs).merge(known, on=keys)
    ratio = rows.events_per_level / rows.crossover
    for truncation, part in rows.groupby("truncation"):
        far, near = ratio[part.index] > FACTOR, ratio[part.index] < 1 / FACTOR
        against = below(part, "difference", THRESHOLD)[far], above(part, "difference", THRESHOLD)[near]
        sides = ("OPS not ahead above the crossover", "Laplace not ahead below it")
        for words, wrong in zip(sides, against, strict=True):
            yield check(f"{words} (M = {truncation:g})", not wrong.any())
            yield from number(
                f"settings against it: {words}, M = {truncation:g}", f"{int(wrong.sum())} of {len(wrong)}"
            )
        yield from extremes(f"lead of Laplace, M = {truncation:g}", part)


@claim(
    "F27",
    "ours, of F8-why",
    "Small losses go like the variances: Laplace's like 1/(epsilon m)^2, OPS's like 1/(epsilon m).",
    f"exponents over losses below 0.1 nats within {RATE:g} and {THRESHOLD:g} standard errors of −2 and −1",
)
def orders(who_leads_exponents):
    rows = hmm(who_leads_exponents)
    yield untestable("no method has enough small losses")
    for row in rows[rows.method.isin(["laplace", "ops"])].itertuples():
        order, kind = (-1, f"M = {row.truncation:g}") if row.method == "ops" else (-2, row.variant)
        setting = named((row.levels, row.n_fields, 0, row.n_states, row.persistence, row.true_concentration))
        name = f"{row.method}, {kind}, {row.axis}, {setting}"
        near = abs(row.exponent - order) < RATE + THRESHOLD * row.exponent_sem
        yield check(f"the loss has the power {order} ({name})", near)
        yield from number(f"exponent, {name}", row.exponent, row.exponent_sem)


@claim(
    "F10-designed",
    "section 5, on simulated events",
    "Simulated events of three states: given ten, the non-private HMM uses all, and the Laplace HMM two or three.",
    "mean number of states that hold 5 % of the cells in a last sample, at each epsilon and density: non-private "
    "above 9.5; clipped Laplace within 2 standard errors of 2 to 3",
)
def states(who_leads):
    rows = select(who_leads, model="hmm")
    rows = rows[rows.n_states > rows.true_states]
    yield untestable("no model has more states than generated the events")
    for row in rows[(rows.method == "non_private") | (rows.variant == "paper")].itertuples():
        used, error = row.states_used_mean, row.states_used_sem
        if row.method == "non_private":
            yield check(f"all are used without privacy (m = {row.events_per_level:g})", used > row.n_states - 0.5)
            yield from number(f"states in use without privacy, m = {row.events_per_level:g}", used, error)
        else:
            name = f"m = {row.events_per_level:g}, epsilon = {row.epsilon:g}"
            yield check(f"Laplace uses two or three ({name})", 2 - 2 * error <= used <= 3 + 2 * error)
            yield from number(f"states in use, Laplace, {name}", used, error)
