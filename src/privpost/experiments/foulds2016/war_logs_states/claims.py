"""States that private hidden Markov models find in war logs (Foulds et al. 2016, figures 3 to 5 and 7)."""

from itertools import product

from privpost.evaluation.rows import one, select
from privpost.experiments.claim_helpers import ends, unpaired
from privpost.experiments.foulds2016.war_log_claims import stands_in
from privpost.lab.claims import check, claim, number, untestable

# Kinds of operations that are counted in a chain.
KINDS = ["multiplications", "noise_variates", "sampling_variates", "elementary_functions"]
# The data set of the paper's statements on Afghanistan, and the stand-ins for its Iraq data.
AFGHANISTAN = "afghanistan"
IRAQ = ("iraq_sigact", "iraq_simulated")
# Fewest and most states that the private model uses, according to the paper.
FEW, MOST = 2, 3
HURT = ("enemy", "civilian", "friendly_or_host")
MEASURES = {"switches": "changes between months", "disagreement": "cells unlike the non-private map"}
MAPS = {"mode": "most frequent states", "final": "final sample"}
# Two maps that differ by at most this many standard errors may differ by chance.
LIMIT = 4
# Month in which the number of troops peaked, according to the paper.
SURGE_PEAK = "2007-09"
STARTS = {"random": "as published", "seeded": "from seeded starts"}
PROCEDURE = "chains as published (a random start, 200 iterations) decide, whether or not they converged; chains from "
PROCEDURE += "seeded starts beside them"


def of_many(table, method: str):
    """Yield data set, start and row of a method's models with the most states, for maps of most frequent states."""
    rows = select(table, method=method, summary="mode")
    rows = rows[rows.n_states == rows.groupby("dataset").n_states.transform("max")]
    for _, row in rows.iterrows():
        yield row.dataset, row.start, row


def shares_used(row, case: str):
    """Yield, as evidence, how many states hold any cell, at least 1 % of cells, and at least 5 %; then the R-hat."""
    yield from number(f"states that hold any cell, {case}", row.states_used_at_all, row.states_used_at_all_sem)
    yield from number(f"states that hold 1 %, {case}", row.states_over_1_percent, row.states_over_1_percent_sem)
    yield from number(f"states that hold 5 %, {case}", row.states_over_5_percent, row.states_over_5_percent_sem)
    yield from number(f"R-hat, {case}", row.rhat_max)


@claim(
    "F10",
    "section 5",
    "Given many states, the non-private HMM uses all of them.",
    "number of states that hold any cell by its most frequent state, mean over independent chains: above the "
    f"model's number of states less 1/2; {PROCEDURE}",
)
def uses_all(war_logs_states_used):
    for dataset, start, row in of_many(war_logs_states_used, "non_private"):
        yield from shares_used(row, f"{dataset}, {STARTS[start]}")
        if start == "random":
            used = row.states_used_at_all > row.n_states - 0.5
            yield check(f"the non-private HMM uses all of its states ({dataset})", used, stands_in(dataset), dataset)


@claim(
    "F30",
    "section 5",
    "Given many states, the private HMM gives substantial numbers of cells to only two or three of them.",
    "mean number of states that hold 1 % or 5 % of the cells over independent releases: within 2 standard errors of "
    f"{FEW} to {MOST}; the paper does not say which share is substantial; {PROCEDURE}",
)
def uses_few(war_logs_states_used):
    for dataset, start, row in of_many(war_logs_states_used, "laplace"):
        yield from shares_used(row, f"{dataset}, {STARTS[start]}")
        for share, column in (("1 %", "states_over_1_percent"), ("5 %", "states_over_5_percent")):
            # A single release has no standard error.
            margin = 2 * row[f"{column}_sem"] if row[f"{column}_sem"] > 0 else 0
            within = FEW - margin <= row[column] <= MOST + margin
            if start == "random":
                name = f"the Laplace HMM uses {FEW} to {MOST} states ({share} of the cells, {dataset})"
                yield check(name, within, stands_in(dataset), dataset)


@claim(
    "F11",
    "section 5",
    "The Laplace mechanism's overhead is small; OPS about doubles the run time.",
    "CPU time of one release and one chain of the paper's sampler on Afghanistan, the quickest of several runs of the "
    "benchmark: Laplace over non-private below 1.1, OPS over non-private between 1.5 and 3; operations "
    "(products, random variates, exponentials and logarithms) are counted beside it",
)
def run_time(war_logs_cpu, war_logs_operations):
    yield untestable("no time was measured")
    for row in war_logs_cpu.itertuples():
        case = f"{row.n_states:g} states" + ("" if row.method == "laplace" else f", M = {row.truncation:g}")
        yield from number(f"CPU time over that without privacy, {row.method}, {case}", row.ratio)
        if row.method == "laplace":
            yield check(f"Laplace adds less than a tenth ({case})", row.ratio < 1.1, of=AFGHANISTAN)
        else:
            yield check(f"OPS takes 1.5 to 3 times the time ({case})", 1.5 <= row.ratio <= 3, of=AFGHANISTAN)
    for (method, dataset, n_states), ratios in operations(war_logs_operations):
        name = f"counted operations over those without privacy, {method}, {dataset}, {n_states} states"
        yield from number(name, ends(ratios))


def operations(table, by=("method", "dataset", "n_states")):
    """Return operations of randomly started chains relative to the non-private chain's, grouped by the columns `by`."""
    table = select(table, start="random").assign(total=lambda rows: rows[KINDS].sum(axis=1))
    plain = select(table, method="non_private").set_index(["dataset", "n_states"]).total
    table = table[table.method != "non_private"].join(plain.rename("plain"), on=["dataset", "n_states"])
    return table.assign(ratio=table.total / table.plain).groupby(list(by)).ratio


@claim(
    "F12",
    "section 5 and supplement",
    "Afghanistan: enemy casualty rates are below friendly or host ones in all states, and below civilian ones in two.",
    "posterior means of the Laplace HMM's emissions, comparison of numbers; one release, so that the noise of another "
    f"is not in the verdict; {PROCEDURE}",
)
def casualties(war_logs_emissions):
    yield untestable("Afghanistan is not there")
    rows = select(war_logs_emissions, method="laplace", dataset=AFGHANISTAN, level="casualties")
    for start, part in rows.groupby("start"):
        rates = part.pivot(index="state", columns="field", values="probability").reindex(columns=list(HURT))
        below = int((rates.enemy < rates.civilian).sum())
        if start == "random":
            friendly = (rates.enemy < rates.friendly_or_host).all()
            yield check("enemy rates below friendly or host rates in all states", friendly, of=AFGHANISTAN)
            yield check("enemy rates below civilian rates in 2 of 3 states", below == 2, of=AFGHANISTAN)
        yield from number(f"states in which enemy rates are below civilian rates, {STARTS[start]}", below)
        yield from number(f"R-hat, {STARTS[start]}", part.rhat_max.iloc[0])
        for field in rates:
            by_state = [round(float(rate), 4) for rate in rates[field]]
            yield from number(f"rate of {field} casualties by state, {STARTS[start]}", by_state)


@claim(
    "F13",
    "section 5, figure 7",
    "Afghanistan: the states of OPS's final sample are noisy compared with an estimate from all of its samples "
    "after burn-in.",
    "share of neighbouring months of a region whose states differ: larger in OPS's final sample than in its most "
    f"frequent states by {LIMIT} standard errors over independent releases, for each truncation (the most frequent "
    f"states may not be released); {PROCEDURE}",
)
def one_sample(war_logs_maps):
    yield untestable("Afghanistan is not there")
    rows = select(war_logs_maps, dataset=AFGHANISTAN, method="ops")
    for (start, truncation), maps in rows.groupby(["start", "truncation"]):
        difference, error = unpaired(one(maps, summary="final"), one(maps, summary="mode"), "switches")
        case = f"OPS's final sample minus its most frequent states, M = {truncation:g}, {STARTS[start]}"
        yield from number(f"changes between months, {case}", difference, error, of=case)
        yield from number(f"R-hat, M = {truncation:g}, {STARTS[start]}", maps.rhat_max.iloc[0])
        if start == "random":
            noisier = f"OPS's final sample is noisier than its most frequent states (M = {truncation:g})"
            yield check(noisier, difference > LIMIT * error, of=AFGHANISTAN)


@claim(
    "F15",
    "section 5",
    "Both private methods have the same overall computational complexity as the non-private sampler.",
    "counted operations of a chain of all iterations (multiplications, random variates, exponentials and logarithms): "
    "below twice those of the non-private chain, on every data set, with few states and with ten",
)
def complexity(war_logs_operations):
    for (method,), ratios in operations(war_logs_operations, by=["method"]):
        yield from number(f"operations over those without privacy, smallest and largest, {method}", ends(ratios))
    for (method, dataset), ratios in operations(war_logs_operations, by=["method", "dataset"]):
        name = f"{method}: less than twice the operations, at every number of states ({dataset})"
        yield check(name, (ratios < 2).all(), stands_in(dataset), dataset)


@claim(
    "F16",
    "ours",
    "The map of OPS's final sample is noisier than the Laplace HMM's.",
    "two measures, from seeded starts: the share of neighbouring months of a region whose states differ, and the "
    "share of cells that disagree with one non-private chain's map. OPS's final sample minus Laplace's most "
    f"frequent states, and minus its final sample (like for like), is above {LIMIT} standard errors over "
    "independent releases, for each truncation. For the disagreement the difference is also above twice the share "
    "of cells in which other non-private chains' maps differ from that chain's, so that another reference could "
    "not change the verdict",
)
def noisier_map(war_logs_maps):
    yield untestable("all maps of all methods are identical")
    for dataset, maps in select(war_logs_maps, start="seeded").groupby("dataset"):
        laplace = {kind: one(maps, method="laplace", summary=kind) for kind in MAPS}
        # With another non-private chain as reference, a map's disagreement changes by at most the distance between the
        # two chains' maps (triangle inequality). A difference of two methods changes by at most twice this distance.
        distance = float(one(maps, method="non_private", summary="mode").disagreement_mean)
        yield from number(
            f"cells in which other non-private maps differ from the one of reference, {dataset}", distance
        )
        yield from number(f"largest R-hat, {dataset}", maps.rhat_max.max())
        if (maps.disagreement_mean == 0).all() and maps.switches_mean.nunique() == 1:
            yield from number(f"a tie: all maps of all methods are identical, {dataset}", True)
            continue
        for truncation, ops in select(maps, method="ops", summary="final").set_index("truncation").iterrows():
            noisier = []
            for (kind, shown), (measure, words) in product(MAPS.items(), MEASURES.items()):
                difference, error = unpaired(ops, laplace[kind], measure)
                case = f"{words}, Laplace's {shown}, M = {truncation:g}, {dataset}"
                yield from number(f"OPS minus Laplace, {case}", difference, error, of=case)
                noisier.append(difference > LIMIT * error + (2 * distance if measure == "disagreement" else 0))
            name = f"OPS's final sample is noisier by both measures (M = {truncation:g}, {dataset})"
            yield check(name, all(noisier), stands_in(dataset, ours=True), dataset)


@claim(
    "F17",
    "section 5, figures 4 and 5",
    "Iraq: most regions turn to the other state after the peak of the surge in September 2007.",
    f"month from which on a region keeps its last state, in one Laplace release: {SURGE_PEAK} or later in most "
    "regions, with all levels, and again without the level that was not recorded from the first month on; "
    f"{PROCEDURE}",
)
def surge(war_logs_turns):
    yield untestable("no real data of Iraq are there")
    turned = select(war_logs_turns, dataset=IRAQ[0])
    for (start, without), part in turned.groupby(["start", "without"]):
        case = ("all levels" if without == "none" else f"without the level {without!r}") + f", {STARTS[start]}"
        months = part.dropna(subset="month").set_index("region").month.astype(str)
        late = int((months >= SURGE_PEAK).sum())
        if start == "random":
            most = late > len(part) / 2
            yield check(f"most regions turn in {SURGE_PEAK} or later, {case}", most, stand_in=True, of=IRAQ[0])
        yield from number(f"regions that turn, {case}", f"{len(months)} of {len(part)}")
        yield from number(f"regions that turn in {SURGE_PEAK} or later, {case}", late)
        yield from number(f"month in which each turns, {case}", dict(sorted(months.items())))
        yield from number(f"R-hat, {case}", part.rhat_max.iloc[0])


# The paper's descriptions of its two states: words in the most frequent type, category and kind of casualties.
READINGS = {
    "friendly action, cache found, enemy casualties": ("friendly action", "cache", "enemy"),
    "explosive hazard, IED explosion, civilian casualties": ("explosive hazard", "ied", "civilian"),
}


@claim(
    "F19",
    "section 5, figure 3",
    "Iraq: one state has friendly action, caches found and enemy casualties as its most frequent levels, the other "
    "explosive hazards, IED explosions and civilian casualties.",
    "posterior means of the Laplace HMM's emissions: the most probable type and category of each state, and the most "
    f"probable of the three kinds of casualties, of data with these fields; {PROCEDURE}",
)
def readings(war_logs_emissions):
    yield untestable("no data of Iraq with these fields are there")
    rates = select(war_logs_emissions, method="laplace", dataset=IRAQ[1])
    # Each kind of casualties has its own field. The most probable kind counts.
    rates = rates[rates.field.isin(["type", "category"]) | (rates.level == "casualties")]
    hurt = rates.level == "casualties"
    rates = rates.assign(word=rates.level.mask(hurt, rates.field), field=rates.field.mask(hurt, "casualties"))
    for start, part in rates.groupby("start"):
        most = part.loc[part.groupby(["state", "field"]).probability.idxmax()].set_index(["state", "field"]).word
        for words, parts in READINGS.items():
            wanted = dict(zip(("type", "category", "casualties"), parts, strict=True))
            fits = [
                all(text in str(most.get((state, field), "")).lower() for field, text in wanted.items())
                for state in part.state.unique()
            ]
            if start == "random":
                yield check(f"a state's most frequent levels are {words}", any(fits), True, IRAQ[1])
        for (state, field), level in most.items():
            yield from number(f"state {state}, {field}, {STARTS[start]}", level)
