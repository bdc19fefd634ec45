"""States that private hidden Markov models find in war logs (Foulds et al. 2016, figures 3 to 5 and 7)."""

from itertools import product

from privpost.evaluation.diagnostics import LARGEST_RHAT
from privpost.evaluation.rows import one, select
from privpost.experiments.claim_helpers import ends, unpaired
from privpost.experiments.foulds2016.war_log_claims import MADE_UP, described
from privpost.experiments.foulds2016.war_logs import title
from privpost.lab.claims import among, check, claim, number, untestable

# Counted operations of a chain.
KINDS = ["multiplications", "noise_variates", "sampling_variates", "elementary_functions"]
# The data set of the paper's statements on Afghanistan, and the stand-ins for its Iraq data.
AFGHANISTAN = "afghanistan"
IRAQ = ("iraq_sigact", "iraq_simulated")
# Columns of the number of states that hold a share of the cells, and of its standard error.
SHARES = {
    "any": ("states_used_at_all", "used_at_all_sem"),
    "1 %": ("states_over_1_percent", "over_1_percent_sem"),
    "5 %": ("states_over_5_percent", "sem"),
}
# The private model uses this many states, by the paper: at least, and at most.
FEW = 2
MOST = 3
MEASURES = {"switches": "changes between months", "disagreement": "cells unlike the non-private map"}
MAPS = {"mode": "most frequent states", "final": "final sample"}
# Two maps that differ by at most this many standard errors may differ by chance.
LIMIT = 4
# When the number of troops of the surge peaked, by the paper.
SURGE_PEAK = "2007-09"
ALL_STATES = (
    "mean number of states that hold any cell (most frequent states), over independent chains: above the model's less "
    "1/2"
)
FEW_STATES = (
    "mean number of states that hold 1 % or 5 % of the cells over independent releases: within 2 standard errors of "
    f"{FEW} to {MOST}; the paper does not say which share is substantial"
)
PROCEDURE = "; by the paper's sampler and number of sweeps, whose chains need not have converged"
UNSETTLED = "the chains that it needs have not converged"


def settled(table, **values):
    """Return the rows of the collapsed sampler whose chains have converged: the others support no claim."""
    rows = select(table, sampler="collapsed", **values)
    return rows[rows.converged.astype(bool)]


def of_many_states(table, dataset, sampler):
    """Return the number of states, if there are many, and the rows by method: of the paper's chains, or converged."""
    many = int(select(table, dataset=dataset).n_states.max())
    wanted = {"dataset": dataset, "n_states": many, "summary": "mode"}
    rows = settled(table, **wanted) if sampler == "collapsed" else select(table, sampler=sampler, **wanted)
    private = select(rows, method="laplace", variant="paper")
    return many, {"Laplace (paper)": private, "non-private": select(rows, method="non_private")}


def states_used(many, methods, dataset):
    """Yield how many of many states each method uses, by `of_many_states`."""
    yield from described(dataset)
    yield untestable(UNSETTLED)
    yield from number("states of the model", many)
    for method, rows in methods.items():
        for row in rows.itertuples():
            for share, (column, error) in SHARES.items():
                name = f"states that hold {share}, {method}"
                yield from number(name, getattr(row, column), getattr(row, error))
            yield from number(f"chains, {method}", row.n_chains)
            yield from number(f"range of their mean log joints [nats], {method}", row.range_log_joint)


# Of two claims over one function the lower one is scored first.
@claim(
    "F10-converged-{dataset}",
    "ours",
    "{data}: given many states, chains without privacy that have converged use all of them.",
    ALL_STATES,
    cases=among("war_logs_states_used", "dataset", "sampler", sampler="collapsed"),
)
@claim(
    "F10-{dataset}",
    "{ours}section 5",
    "{data}: given many states, the non-private HMM uses all of them.",
    ALL_STATES + PROCEDURE,
    cases=among("war_logs_states_used", "dataset", "sampler", sampler="paper"),
)
def uses_all(war_logs_states_used, dataset, sampler):
    many, methods = of_many_states(war_logs_states_used, dataset, sampler)
    yield from states_used(many, methods, dataset)
    for used in methods["non-private"].states_used_at_all:
        yield check("the non-private HMM uses all of its states", used > many - 0.5)


@claim(
    "F10-private-converged-{dataset}",
    "ours",
    "{data}: given many states, chains on the noisy counts that have converged give substantial numbers of cells to "
    "two or three only.",
    FEW_STATES,
    cases=among("war_logs_states_used", "dataset", "sampler", sampler="collapsed"),
)
@claim(
    "F10-private-{dataset}",
    "{ours}section 5",
    "{data}: given many states, the private HMM gives substantial numbers of cells to two or three only.",
    FEW_STATES + PROCEDURE,
    cases=among("war_logs_states_used", "dataset", "sampler", sampler="paper"),
)
def uses_few(war_logs_states_used, dataset, sampler):
    many, methods = of_many_states(war_logs_states_used, dataset, sampler)
    yield from states_used(many, methods, dataset)
    for _, row in methods["Laplace (paper)"].iterrows():
        for share in ("1 %", "5 %"):
            column, error = SHARES[share]
            # A single release has no standard error.
            margin = 2 * row[error] if row[error] > 0 else 0
            within = FEW - margin <= row[column] <= MOST + margin
            yield check(f"the Laplace HMM uses {FEW} to {MOST} states ({share} of the cells)", within)


@claim(
    "F11",
    "section 5",
    "The Laplace mechanism's overhead is small; OPS about doubles the run time.",
    "CPU time of one release and one chain of the paper's sampler on Afghanistan, the quickest of several runs: "
    "Laplace over non-private below 1.1, OPS over non-private between 1.5 and 3; operations (products, random "
    "variates, exponentials and logarithms) are counted beside it",
)
def run_time(war_logs_cpu, war_logs_operations):
    yield untestable("no time was measured on Afghanistan")
    for n_states, part in select(war_logs_cpu, dataset=AFGHANISTAN).groupby("n_states"):
        name = f"{title(AFGHANISTAN)}, {n_states:g} states"
        plain = float(one(part, method="non_private").seconds)
        yield from number(f"CPU seconds without privacy, {name}", plain)
        for row in part[part.method != "non_private"].itertuples():
            ratio = row.seconds / plain
            if row.method == "laplace":
                yield from number(f"CPU time, Laplace over non-private, {name}", ratio)
                yield check(f"Laplace adds less than a tenth ({name})", ratio < 1.1)
            else:
                case = f"{name}, M = {row.truncation:g}"
                yield from number(f"CPU time, OPS over non-private, {case}", ratio)
                yield check(f"OPS takes 1.5 to 3 times the time ({case})", 1.5 <= ratio <= 3)
    for (method, dataset, n_states), ratios in operations(war_logs_operations):
        name = f"counted operations over those without privacy, {method}, {dataset}, {n_states} states"
        yield from number(name, ends(ratios))


def operations(table, by=("method", "dataset", "n_states")):
    """Return operations over those of the non-private chain by some keys, of the paper's sampler and variant."""
    table = select(table, sampler="paper")
    table = table[table.variant != "corrected"].assign(total=table[KINDS].sum(axis=1))
    plain = select(table, method="non_private").set_index(["dataset", "n_states"]).total
    table = table[table.method != "non_private"].join(plain.rename("plain"), on=["dataset", "n_states"])
    return table.assign(ratio=table.total / table.plain).groupby(list(by)).ratio


@claim(
    "F12-afghanistan",
    "section 5 and supplement",
    "Afghanistan: enemy casualty rates are below friendly or host ones in all states, below civilian ones in two.",
    "posterior means of the Laplace HMM's emissions, comparison of numbers; one release, so that the noise of another "
    "is not in the verdict",
)
def casualties(war_logs_emissions, war_logs_states_used):
    if AFGHANISTAN not in set(war_logs_states_used.dataset):
        return
    rates = settled(war_logs_emissions, method="laplace", dataset=AFGHANISTAN, level="casualties")
    rates = rates.pivot(index="state", columns="field", values="probability")
    rates = rates.reindex(columns=["enemy", "civilian", "friendly_or_host"])
    yield untestable(UNSETTLED)
    if len(rates):
        below = int((rates.enemy < rates.civilian).sum())
        friendly = (rates.enemy < rates.friendly_or_host).all()
        yield check("enemy rates below friendly or host rates in all states", friendly)
        yield check("enemy rates below civilian rates in 2 of 3 states", below == 2)
        yield from number("states in which enemy rates are below civilian rates", below)
        for field in rates:
            by_state = [round(float(rate), 4) for rate in rates[field]]
            yield from number(f"rate of {field} casualties by state", by_state)


@claim(
    "F13-afghanistan",
    "section 5, figure 7",
    "Afghanistan: the states of OPS's final sample are noisy against an estimate from all of its samples after "
    "burn-in.",
    "share of neighbouring months of a region whose states differ: larger in OPS's final sample than in its most "
    f"frequent states by {LIMIT} standard errors over independent releases, for each truncation whose chains have "
    "converged (the most frequent states may not be released)",
)
def one_sample(war_logs_maps, war_logs_states_used):
    if AFGHANISTAN not in set(war_logs_states_used.dataset):
        return
    yield untestable(UNSETTLED)
    for truncation, maps in settled(war_logs_maps, dataset=AFGHANISTAN, method="ops").groupby("truncation"):
        difference, error = unpaired(one(maps, summary="final"), one(maps, summary="mode"), "switches")
        case = f"OPS's final sample minus its most frequent states, M = {truncation:g}"
        yield from number(f"changes between months, {case}", difference, error, of=case)
        noisier = f"OPS's final sample is noisier than its most frequent states (M = {truncation:g})"
        yield check(noisier, difference > LIMIT * error)


@claim(
    "F15",
    "section 5",
    "Both private methods have the same overall computational complexity as the non-private sampler.",
    "counted operations of a chain of all iterations (multiplications, random variates, exponentials and logarithms): "
    "below twice those of the non-private chain, on every data set, with few states and with ten",
)
def complexity(war_logs_operations):
    for method, ratios in operations(war_logs_operations, by=["method"]):
        name = f"operations over those without privacy, smallest and largest, {method[0]}"
        yield from number(name, ends(ratios))
    for (method, dataset), ratios in operations(war_logs_operations, by=["method", "dataset"]):
        name = f"{method}: less than twice the operations, at every number of states ({dataset})"
        yield check(name, (ratios < 2).all(), dataset in IRAQ)


@claim(
    "F16-{dataset}",
    "ours",
    "{title}: the map of OPS's final sample is noisier than the Laplace HMM's.",
    "share of neighbouring months of a region whose states differ, and of cells that disagree with one non-private "
    "chain's map: OPS's final sample minus Laplace's most frequent states and minus Laplace's final sample (like for "
    f"like), above {LIMIT} standard errors over independent releases, for each truncation; for the disagreement also "
    "above twice the share of cells in which other non-private chains' maps differ from the one of reference, so that "
    "the mean over those, labels held, could not turn it",
    cases=among("war_logs_states_used", "dataset"),
)
def noisier_map(war_logs_maps, war_logs_states_used, dataset):
    maps = settled(war_logs_maps, dataset=dataset)
    uncorrected = maps[maps.variant != "corrected"]
    yield from described(dataset)
    if set(uncorrected.method) != {"non_private", "laplace", "ops"}:
        yield untestable(UNSETTLED)
        return
    laplace = {kind: one(uncorrected, method="laplace", summary=kind) for kind in MAPS}
    plain = one(uncorrected, method="non_private", summary="mode")
    tie = (uncorrected.disagreement_mean == 0).all() and uncorrected.switches_mean.nunique() == 1
    if tie:
        truth = "; they are the true states" if (uncorrected.misses_mean == 0).all() else ""
        identical = f"a tie: all maps of all methods and repeats are identical{truth}, so that none can be noisier"
        yield untestable(identical)
    # Another non-private chain as reference moves a map's disagreement by at most the distance between the two chains'
    # maps (triangle inequality), hence a difference of two methods by at most twice that.
    distance = float(plain.disagreement_mean)
    shifts = {"switches": 0.0, "disagreement": 2 * distance}
    for truncation, ops in select(uncorrected, method="ops", summary="final").set_index("truncation").iterrows():
        for (kind, shown), (measure, words) in product(MAPS.items(), MEASURES.items()):
            difference, error = unpaired(ops, laplace[kind], measure)
            case = f"{words}, Laplace's {shown}, M = {truncation:g}"
            yield from number(f"OPS minus Laplace, {case}", difference, error, of=case)
            if not tie:
                name = f"more {words} under OPS than in Laplace's {shown} (M = {truncation:g})"
                yield check(name, difference > LIMIT * error + shifts[measure])
    for kind, row in laplace.items():
        yield from number(f"changes between months, Laplace, {kind}", row.switches_mean)
        yield from number(f"cells unlike the non-private map, Laplace, {kind}", row.disagreement_mean)
    yield from number("cells in which other non-private maps differ from the one of reference", distance)
    yield from number("its standard error", plain.disagreement_sem)
    yield from number("R-hat, all methods", ", ".join(sorted(set(maps.rhat_max.astype(str)))))
    used = select(settled(war_logs_states_used, dataset=dataset), method="ops", summary="final")
    for row in used[used.n_states == used.n_states.min()].itertuples():
        name = f"share of states in use in OPS's final samples, M = {row.truncation:g}"
        yield from number(name, row.states_used_at_all / row.n_states)


@claim(
    "F17-iraq_sigact",
    "section 5, figures 4 and 5",
    "{title}: most regions turn to the other state after the surge peaked in September 2007.",
    f"month from which on a region keeps its last state, in one Laplace release: {SURGE_PEAK} or later in most "
    "regions, with all levels, and without the one that was not recorded from the first month on",
)
def surge(war_logs_turns):
    if not len(select(war_logs_turns, dataset=IRAQ[0])):
        return
    yield from described(IRAQ[0])
    yield untestable(UNSETTLED)
    turns = settled(war_logs_turns, dataset=IRAQ[0])
    for without, part in turns.groupby("without"):
        case = "all levels" if without == "none" else f"without the level {without!r}"
        months = part.dropna(subset="month").set_index("region").month.astype(str)
        late = int((months >= SURGE_PEAK).sum())
        yield check(f"most regions turn in {SURGE_PEAK} or later, {case}", late > len(part) / 2)
        yield from number(f"regions that turn, {case}", f"{len(months)} of {len(part)}")
        yield from number(f"regions that turn in {SURGE_PEAK} or later, {case}", late)
        yield from number(f"month in which each turns, {case}", dict(sorted(months.items())))
        yield from number(f"R-hat, {case}", str(part.rhat_max.iloc[0]))


@claim(
    "F18",
    "ours",
    "Real data: the paper's sampler (explicit emissions, a random start, 200 iterations) misses the law that a "
    "collapsed sampler that searches for its starts reaches.",
    "eight chains on the same counts, each from its own random start: a chain's mean is below the best log joint that "
    "any chain of either sampler saw after burn-in by more than five standard deviations within chains, and 1 nat, "
    f"where the collapsed chains have converged. R-hat above {LARGEST_RHAT:g} alone does not count: chains of 200 "
    "iterations are short",
    variant="paper, corrected",
)
def missed(war_logs_states_used, war_logs_maps):
    keys = ["dataset", "n_states", "method", "variant"]
    used, maps = (
        table[(table["summary"] == "mode") & (table.method != "ops")].fillna({"variant": ""})
        for table in (war_logs_states_used, war_logs_maps)
    )
    # Maps are of few states.
    maps = maps.assign(n_states=maps.dataset.map(war_logs_states_used.groupby("dataset").n_states.min()))
    shares = maps.set_index([*keys, "sampler"]).disagreement_mean
    yield untestable("no collapsed chain has converged")
    for (dataset, n_states, method, variant), part in used.groupby(keys):
        case = f"{dataset}, {n_states} states, {method}" + (f" ({variant})" if variant else "")
        pair = {row.sampler: row for row in part.itertuples()}
        if set(pair) != {"paper", "collapsed"}:
            continue
        for name, row in pair.items():
            evidence = [row.below_best, row.rhat_max]
            yield from number(f"lowest chain below the best log joint [nats] and R-hat, {name}, {case}", evidence)
            share = shares.get((dataset, n_states, method, variant, name))
            if share is not None:
                yield from number(f"share of cells unlike the non-private map, {name}, {case}", share)
        # On made-up data the states are far apart, and 200 iterations find them from any start.
        if pair["collapsed"].converged and dataset not in MADE_UP:
            stay = f"chains of the paper's sampler stay below the best log joint where collapsed ones do not ({case})"
            yield check(stay, not pair["paper"].near, dataset in IRAQ)


# What the paper reads off its two states: parts of the most frequent type, category and kind of casualties.
READINGS = {
    "friendly action, cache found, enemy casualties": ("friendly action", "cache", "enemy"),
    "explosive hazard, IED explosion, civilian casualties": ("explosive hazard", "ied", "civilian"),
}


@claim(
    "F19-{dataset}",
    "section 5, figure 3",
    "{title}: one state has friendly action, caches found and enemy casualties as its most frequent levels, the other "
    "explosive hazards, IED explosions and civilian casualties.",
    "posterior means of the Laplace HMM's emissions: the most probable type and category of each state, and the most "
    "probable of the three kinds of casualties",
    cases=[{"dataset": dataset} for dataset in IRAQ],
)
def readings(war_logs_emissions, dataset):
    rates = settled(war_logs_emissions, method="laplace", dataset=dataset)
    if "category" not in set(rates.field):
        return
    yield from described(dataset)
    # Casualties have a field for each kind, of which the most probable one counts.
    rates = rates[rates.field.isin(["type", "category"]) | (rates.level == "casualties")]
    hurt = rates.level == "casualties"
    rates = rates.assign(word=rates.level.mask(hurt, rates.field), field=rates.field.mask(hurt, "casualties"))
    most = rates.loc[rates.groupby(["state", "field"]).probability.idxmax()].set_index(["state", "field"]).word
    for words, parts in READINGS.items():
        named = dict(zip(("type", "category", "casualties"), parts, strict=True))
        fits = [
            all(part in str(most.get((state, field), "")).lower() for field, part in named.items())
            for state in rates.state.unique()
        ]
        yield check(f"a state's most frequent levels are {words}", any(fits))
    for (state, field), level in most.items():
        yield from number(f"state {state}, {field}", level)
