"""States that private hidden Markov models find in war logs (Foulds et al. 2016, figures 3 to 5 and 7)."""

from __future__ import annotations

import math
from typing import NamedTuple

from privpost.evaluation.claims import Claim, Why, from_checks
from privpost.studies.foulds2016.war_logs import title

MAP_MEASURES = {"switches": "changes between months", "disagreement": "cells unlike the non-private map"}
# Two maps differ by chance as long as they do by no more than this many standard errors.
LIMIT = 4
# Where no method's map is unlike the non-private one in more of the cells, their states are clear.
CLEAR = 0.05
# Which data set the paper's statements on Afghanistan are about.
AFGHANISTAN = "afghanistan"
# Real events in Iraq; the simulated ones have the turn built in.
IRAQ = "iraq_sigact"
# When the number of troops of the surge peaked, by the paper.
SURGE_PEAK = "2007-09"
STATES = "docs/foulds2016_war_logs.md#states-war_logs_states-figures-3-to-5-and-7"
OUTCOMES = "docs/foulds2016_war_logs.md#what-the-data-sets-say"


def claims(tables) -> list[Claim]:
    """Score F10 to F13 and F15 to F17, on every data set that the tables hold."""
    used, maps = tables["war_logs_states_used"], tables["war_logs_maps"]
    scored = [_operation_claim(tables["war_logs_operations"]), _complexity_claim(tables["war_logs_operations"])]
    for dataset in sorted(used.dataset.unique()):
        scored.append(_used_claim(dataset, used[used.dataset == dataset]))
        scored.append(_map_claim(dataset, maps[maps.dataset == dataset]))
    emissions = tables["war_logs_emissions"]
    if AFGHANISTAN in set(emissions.dataset):
        scored.append(_casualty_claim(emissions[emissions.dataset == AFGHANISTAN]))
    if AFGHANISTAN in set(maps.dataset):
        scored.append(_one_sample_claim(maps[maps.dataset == AFGHANISTAN]))
    assignments = tables["war_logs_assignments"]
    if IRAQ in set(assignments.dataset):
        scored.append(_surge_claim(assignments[assignments.dataset == IRAQ], emissions[emissions.dataset == IRAQ]))
    return sorted(scored, key=lambda claim: (int(claim.id.split("-")[0][1:]), claim.id))


def _one(rows_of_table, **values):
    """Return the only row with the given values."""
    for name, value in values.items():
        rows_of_table = rows_of_table[rows_of_table[name] == value]
    if len(rows_of_table) != 1:
        raise ValueError(f"{len(rows_of_table)} rows with {values}, expected one")
    return rows_of_table.iloc[0]


def _used_claim(dataset, used) -> Claim:
    many = int(used.n_states.max())
    chosen = used[(used.n_states == many) & (used.summary == "mode")]
    private = _one(chosen, method="laplace", variant="paper")
    corrected = _one(chosen, method="laplace", variant="corrected")
    plain = _one(chosen, method="non_private")
    low, high = 2, 3
    error = 0.0 if math.isnan(private["sem"]) else float(private["sem"])
    checks = {
        f"the Laplace HMM uses {low} to {high} states": low - 2 * error
        <= private.states_over_5_percent
        <= high + 2 * error,
        # 5 % of the cells per state can't be had by more than 20 states; "all" leaves one of them below it.
        "the non-private HMM uses all but at most one": plain.states_over_5_percent >= many - 1,
    }
    evidence = {
        "states over 5 %, Laplace (paper)": float(private.states_over_5_percent),
        "its standard error": float(private["sem"]),
        "states over 5 %, Laplace (corrected)": float(corrected.states_over_5_percent),
        "states over 5 %, non-private": float(plain.states_over_5_percent),
        "standard error, non-private": float(plain["sem"]),
        "states of the model": many,
        "R-hat, all methods": ", ".join(sorted(set(chosen.rhat_max.astype(str)))),
    }
    found, reference = float(private.states_over_5_percent), float(plain.states_over_5_percent)
    others = ", and its data are others" if plain.stand_in else ""
    counts = f"{found:.1f} ± {error:.1f} (Laplace) and {reference:.1f} ± {plain['sem']:.1f} (non-private)"
    # Without labels in the data the number of true states is known for simulated ones only; there chains find it.
    exact = reference == low and plain["sem"] == 0
    fewer = found < reference - LIMIT * math.hypot(error, plain["sem"])
    whys = [
        Why(
            f"The noise does not act as a regulariser: of {many} states {counts} hold at least 5 % of the cells. The "
            f"paper does not say when it counts a state as used{others}.",
            ("the *HMM uses*",),
            STATES,
            when=found > high and not exact and not fewer,
        ),
        Why(
            f"The non-private chain finds the {low} states that generated these data in every repeat and leaves the "
            f"other {many - low} empty; the paper's data may have more to tell apart.",
            ("the non-private HMM uses*",),
            STATES,
            when=exact,
        ),
    ]
    return from_checks(
        f"F10-{dataset}",
        "section 5",
        f"{title(dataset)}: given many states, the private HMM uses two or three, the non-private one all.",
        "mean number of states that hold 5 % of the cells over independent releases: within 2 standard errors of "
        f"{low} to {high} (Laplace), at least all but one (non-private). Chains may not have converged; their R-hat: "
        f"{evidence['R-hat, all methods']}",
        checks,
        evidence,
        whys=whys,
        stand_in=bool(plain.stand_in),
    )


def _map_claim(dataset, maps) -> Claim:
    laplace = {kind: _one(maps, method="laplace", variant="paper", summary=kind) for kind in ("mode", "final")}
    plain = {kind: _one(maps, method="non_private", summary=kind) for kind in ("mode", "final")}
    # Another non-private chain as reference moves a map's disagreement by at most the distance between the two chains'
    # maps (triangle inequality), hence a difference of two methods by at most twice that.
    distance = float(plain["mode"].disagreement_mean)
    shifts = {"switches": 0.0, "disagreement": 2 * distance}
    checks, evidence = {}, {}
    gaps: dict[str, dict[str, Gap]] = {name: {} for name in MAP_MEASURES}
    for truncation in sorted(maps.truncation.dropna().unique()):
        ops = _one(maps, method="ops", truncation=truncation, summary="final")
        for kind, shown in (("mode", "most frequent states"), ("final", "final sample")):
            for name, words in MAP_MEASURES.items():
                difference = float(ops[f"{name}_mean"] - laplace[kind][f"{name}_mean"])
                error = math.hypot(ops[f"{name}_sem"], laplace[kind][f"{name}_sem"])
                case = f"{words}, Laplace's {shown}, M = {truncation:g}"
                evidence[f"OPS minus Laplace, {case}"] = difference
                evidence[f"its standard error, {case}"] = error
                check = f"more {words} under OPS than in Laplace's {shown} (M = {truncation:g})"
                checks[check] = difference > LIMIT * error + shifts[name]
                if not checks[check]:
                    gaps[name][check] = Gap(difference, error, float(truncation))
    for kind, row in laplace.items():
        evidence[f"changes between months, Laplace, {kind}"] = float(row.switches_mean)
        evidence[f"cells unlike the non-private map, Laplace, {kind}"] = float(row.disagreement_mean)
    evidence["cells in which other non-private maps differ from the one of reference"] = distance
    evidence["its standard error"] = float(plain["mode"].disagreement_sem)
    evidence["R-hat, all methods"] = ", ".join(sorted(set(maps.rhat_max.astype(str))))
    fields = {
        "id": f"F13-{dataset}",
        "place": "section 5, figure 7",
        "statement": f"{title(dataset)}: the map of OPS's final sample is noisier than the Laplace HMM's.",
        "test": "share of neighbouring months of a region whose states differ, and of cells that disagree with one "
        "non-private chain's map: OPS's final sample minus Laplace's most frequent states (the paper's figure) and "
        f"minus Laplace's final sample (like for like), above {LIMIT} standard errors over independent releases, for "
        "each truncation; for the disagreement also above twice the share of cells in which other non-private chains' "
        "maps differ from the one of reference, so that the mean over those, labels held, could not turn it. "
        "OPS's epsilon is claimed only if its chain has converged; R-hat of these chains: "
        f"{evidence['R-hat, all methods']}",
        "stand_in": bool(plain["mode"].stand_in),
    }
    chosen = maps[maps.variant != "corrected"]
    if (chosen.disagreement_mean == 0).all() and chosen.switches_mean.nunique() == 1:
        truth = "; they are the true states" if (chosen.misses_mean == 0).all() else ""
        return Claim(
            **fields,
            verdict="not testable",
            evidence=evidence,
            reason=f"a tie: all maps of all methods and repeats are identical{truth}, so that none can be noisier",
        )
    whys = _map_whys(gaps, distance, laplace["mode"], clear=bool(chosen.disagreement_mean.max() < CLEAR))
    return from_checks(checks=checks, evidence=evidence, whys=whys, **fields)


class Gap(NamedTuple):
    """OPS minus Laplace in one measure of their maps, a share, with its standard error, at OPS's truncation."""

    difference: float
    error: float
    truncation: float

    @property
    def by_chance(self) -> bool:
        return abs(self.difference) <= LIMIT * self.error

    @property
    def opposite(self) -> bool:
        return self.difference < -LIMIT * self.error


def _span(gaps: dict[str, Gap]) -> str:
    """Return the smallest and the largest difference in words; empty when there is none."""
    found = [f"{gap.difference:+.1%}" for gap in sorted(gaps.values())]
    return " to ".join(dict.fromkeys((found[0], found[-1]))) if found else ""


def _truncations(gaps: dict[str, Gap]) -> str:
    return ", ".join(f"M = {truncation:g}" for truncation in sorted({gap.truncation for gap in gaps.values()}))


def _map_whys(gaps: dict[str, dict[str, Gap]], distance: float, laplace, clear: bool) -> list[Why]:
    """Explain comparisons that fail, given by measure and check; `clear` tells whether all maps are nearly the same.

    What a text says of differences is asked of each one that it explains, by their standard errors.
    """
    changes, unlike = gaps["switches"], gaps["disagreement"]
    alike = {check: gap for check, gap in changes.items() if gap.by_chance}
    smoother = {check: gap for check, gap in changes.items() if gap.opposite}
    # All comparisons of changes pass, and Laplace's map is farther from the reference than non-private ones are.
    wrong = not changes and laplace.disagreement_mean > distance + LIMIT * laplace.disagreement_sem
    no_farther = {check: gap for check, gap in unlike.items() if gap.by_chance}
    closer = {check: gap for check, gap in unlike.items() if gap.opposite}
    farther = {check: gap for check, gap in unlike.items() if gap.difference > LIMIT * gap.error}
    turned = {check: gap for check, gap in farther.items() if gap.difference <= 2 * distance}
    short = {check: gap for check, gap in farther.items() if check not in turned}
    reason = ": with hundreds of events in a cell its state is clear under either release" if clear else ""
    smooth = ": clipped noise draws sparse regions into one state, which makes Laplace's map smooth and wrong"
    others = f"other non-private chains' maps differ from it in {100 * distance:.2g} %"
    texts = [
        (
            smoother,
            f"The opposite at {_truncations(smoother)}: OPS's map is smoother than Laplace's, its share of changes "
            f"between months differs by {_span(smoother)} ({laplace.switches_mean:.1%} under Laplace), beyond {LIMIT} "
            "standard errors.",
        ),
        (
            alike,
            f"At {_truncations(alike)} no difference in changes between months is beyond {LIMIT} standard errors "
            f"({_span(alike)}, {laplace.switches_mean:.1%} under Laplace){reason}.",
        ),
        (
            closer,
            f"OPS's map is closer to the non-private one at {_truncations(closer)} ({_span(closer)} of the cells, "
            f"beyond {LIMIT} standard errors){smooth if wrong else ''}.",
        ),
        (
            no_farther,
            f"At {_truncations(no_farther)} no difference in cells unlike the non-private map is beyond {LIMIT} "
            f"standard errors ({_span(no_farther)} of the cells)"
            f"{', though OPS changes more often' + smooth if wrong else ''}.",
        ),
        (
            turned,
            f"OPS's map differs more from the non-private one, by {_span(turned)} of the cells "
            f"({_truncations(turned)}), which the choice of that one can explain: {others}.",
        ),
        (
            short,
            f"OPS's map differs more from the non-private one, by {_span(short)} of the cells ({_truncations(short)}), "
            f"beyond {LIMIT} standard errors but not by twice the {100 * distance:.2g} % in which other non-private "
            "chains' maps differ from it: short of the limit rather than a tie.",
        ),
    ]
    return [Why(text, tuple(explained), STATES) for explained, text in texts if explained]


def _casualty_claim(emissions) -> Claim:
    rows_of_level = emissions[(emissions.method == "laplace") & (emissions.level == "casualties")]
    checks, evidence, whys = {}, {}, []
    for variant, part in rows_of_level.groupby("variant"):
        rates = part.pivot(index="state", columns="field", values="probability")
        for field in ("enemy", "civilian", "friendly_or_host"):
            evidence[f"rate of {field} casualties by state, {variant}"] = [round(float(x), 4) for x in rates[field]]
        if variant == "paper":
            checks["enemy rates below friendly or host rates in all states"] = bool(
                (rates.enemy < rates.friendly_or_host).all()
            )
            below = int((rates.enemy < rates.civilian).sum())
            checks["enemy rates below civilian rates in 2 of 3 states"] = below == 2
            whys = [
                Why(
                    f"Enemy rates are above civilian rates in {len(rates) - below} of {len(rates)} states. Detained "
                    "enemies count as enemy casualties, as in the paper; over the whole file enemy casualties are then "
                    "the more frequent. The paper's file, its reading of it or its release may differ from ours.",
                    ("enemy rates below civilian rates*",),
                    OUTCOMES,
                    when=below < 2,
                )
            ]
    return from_checks(
        f"F12-{AFGHANISTAN}",
        "section 5 and supplement",
        "Afghanistan: enemy casualty rates are below friendly or host ones in all states, below civilian ones in two.",
        "posterior means of the Laplace HMM's emissions, comparison of numbers; one release, so that the noise of "
        "another is not in the verdict",
        checks,
        evidence,
        whys=whys,
    )


def _complexity_claim(operations) -> Claim:
    """F15: operations of both private chains against those of the non-private one."""
    kinds = ["multiplications", "noise_variates", "sampling_variates", "elementary_functions"]
    totals = operations.assign(total=operations[kinds].sum(axis=1))
    totals = totals[totals.variant != "corrected"]
    plain = totals[totals.method == "non_private"].set_index(["dataset", "n_states"]).total
    checks, evidence = {}, {}
    for method, rows_of_method in totals[totals.method != "non_private"].groupby("method"):
        ratio = rows_of_method.set_index(["dataset", "n_states"]).total / plain
        evidence[f"operations over those without privacy, smallest and largest, {method}"] = [
            float(ratio.min()),
            float(ratio.max()),
        ]
        for name, of_data in ratio.groupby("dataset"):
            checks[f"{method}: less than twice the operations, at every number of states ({name})"] = bool(
                (of_data < 2).all()
            )
    return from_checks(
        "F15",
        "section 5",
        "Both private methods have the same overall computational complexity as the non-private sampler.",
        "counted operations of a chain of all iterations (multiplications, random variates, exponentials and "
        "logarithms): below twice those of the non-private chain, on every data set, with few states and with ten",
        checks,
        evidence,
        stand_in=bool(operations.stand_in.any()),
    )


def _one_sample_claim(maps) -> Claim:
    """F16: OPS's released sample against its own most frequent states, and those against Laplace's."""
    laplace = _one(maps, method="laplace", variant="paper", summary="mode")
    checks, evidence, shares = {}, {}, []
    for truncation in sorted(maps.truncation.dropna().unique()):
        final, mode = (_one(maps, method="ops", truncation=truncation, summary=kind) for kind in ("final", "mode"))
        for words, one, other in (
            ("final sample minus most frequent states", final, mode),
            ("most frequent states minus Laplace's", mode, laplace),
        ):
            difference = float(one.switches_mean - other.switches_mean)
            error = math.hypot(one.switches_sem, other.switches_sem)
            evidence[f"changes between months, OPS's {words}, M = {truncation:g}"] = difference
            evidence[f"its standard error, OPS's {words}, M = {truncation:g}"] = error
            if other is mode:
                checks[f"OPS's final sample is noisier than its most frequent states (M = {truncation:g})"] = (
                    difference > 4 * error
                )
            else:
                checks[f"those are as smooth as Laplace's (M = {truncation:g})"] = difference < 4 * error
        excess = final.switches_mean - laplace.switches_mean
        shares.append(float((final.switches_mean - mode.switches_mean) / excess) if excess else math.nan)
    return from_checks(
        f"F16-{AFGHANISTAN}",
        "section 5, figure 7",
        "Afghanistan: OPS's map is noisy because a single sample is released.",
        "share of neighbouring months of a region whose states differ: larger in OPS's final sample than in its most "
        "frequent states, and those not above Laplace's, each by 4 standard errors over independent releases, for each "
        "truncation (the most frequent states may not be released: this asks for the cause)",
        checks,
        evidence,
        whys=[
            Why(
                f"One sample explains {min(shares):.0%} to {max(shares):.0%} of the gap to Laplace's map. The rest "
                "stays when OPS's states are averaged: tempering leaves sparse cells undecided, where Laplace's "
                "clipped noise moves them all into one state.",
                ("those are as smooth*",),
                STATES,
                when=min(shares) > 0,
            )
        ],
        stand_in=bool(laplace.stand_in),
    )


def _surge_claim(assignments, emissions) -> Claim:
    """F17: when the regions' states turn for good."""
    rows_of_map = assignments[(assignments.method == "laplace") & (assignments.variant == "paper")]
    wide = rows_of_map.pivot(index="region", columns="month", values="state")
    # The month from which on a region keeps the state of its last month.
    turn = {}
    for region, states in wide.iterrows():
        kept = states.dropna()
        other = kept[kept != kept.iloc[-1]]
        later = kept.index[kept.index > other.index[-1]] if len(other) else []
        if len(later):
            turn[region] = later[0]
    after = [region for region, month in turn.items() if month >= SURGE_PEAK]
    common = max(set(turn.values()), key=list(turn.values()).count) if turn else ""
    together = list(turn.values()).count(common)
    rates = emissions[(emissions.method == "laplace") & (emissions.variant == "paper")]
    rates = rates.pivot_table(index="level", columns="state", values="probability")
    # A level that one state never has and the other often has: recorded from some month on only.
    unrecorded = rates[(rates.min(axis=1) < 0.01) & (rates.max(axis=1) > 0.1)].index.tolist()
    return from_checks(
        f"F17-{IRAQ}",
        "section 5, figures 4 and 5",
        f"{title(IRAQ)}: most regions turn to the other state after the troops of the surge peaked (September 2007).",
        f"month from which on a region keeps its last state, in one Laplace release: {SURGE_PEAK} or later in more "
        "than half of the regions that turn",
        {"most regions turn after the peak": bool(turn) and len(after) > len(turn) / 2},
        {
            "regions that turn": len(turn),
            "after the peak": len(after),
            "month in which each turns": dict(sorted(turn.items())),
        },
        whys=[
            Why(
                f"{together} of {len(turn)} regions turn in the same month, {common}, in which the recording changes: "
                f"“{unrecorded[0] if unrecorded else ''}” is a type of these data from then on only. A break in the "
                "records hides any turn of the war.",
                ("most regions turn after the peak",),
                STATES,
                when=len(unrecorded) > 0 and together > len(turn) / 2,
            )
        ],
        stand_in=bool(rows_of_map.stand_in.iloc[0]),
    )


def _operation_claim(operations) -> Claim:
    checks, evidence = {}, {}
    ratios, totals = [], []
    kinds = ["multiplications", "noise_variates", "sampling_variates", "elementary_functions"]
    for (dataset, n_states), part in operations.groupby(["dataset", "n_states"]):
        name = f"{dataset}, {n_states} states"
        plain = _one(part, method="non_private")
        laplace = _one(part, method="laplace", variant="paper")
        overhead = float(laplace.noise_variates / plain.sampling_variates)
        evidence[f"noise variates per variate of the chain, {name}"] = overhead
        total = float(laplace[kinds].sum() / plain[kinds].sum())
        evidence[f"all operations, Laplace over non-private, {name}"] = total
        checks[f"Laplace adds less than a tenth to all operations ({name})"] = total < 1.1
        for row in part[part.method == "ops"].itertuples():
            ratio = row.sampling_variates / plain.sampling_variates
            evidence[f"variates, OPS over non-private, {name}, M = {row.truncation:g}"] = float(ratio)
            every = sum(getattr(row, kind) for kind in kinds) / float(plain[kinds].sum())
            evidence[f"all operations, OPS over non-private, {name}, M = {row.truncation:g}"] = float(every)
            checks[f"OPS takes 1.5 to 3 times the variates ({name}, M = {row.truncation:g})"] = 1.5 <= ratio <= 3
            ratios.append(ratio)
            totals.append(every)
    return from_checks(
        "F11",
        "section 5",
        "The Laplace mechanism's overhead is small; OPS about doubles the run time.",
        "counted operations of a chain of all iterations (multiplications, random variates, exponentials and "
        "logarithms): Laplace over non-private below 1.1; random variates of OPS over non-private between 1.5 and 3",
        checks,
        evidence,
        whys=[
            Why(
                f"OPS draws {min(ratios):.1f} to {max(ratios):.1f} times the random variates, depending on how many "
                f"proposals of its truncated emissions are rejected, and {min(totals) - 1:.0%} to "
                f"{max(totals) - 1:.0%} more operations in all: a doubled run time is a matter of implementation.",
                ("OPS takes 1.5 to 3 times the variates*",),
                OUTCOMES,
            )
        ],
        stand_in=bool(operations.stand_in.any()),
    )
