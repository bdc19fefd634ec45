"""Maps of states that private hidden Markov models find in war logs (Foulds et al. 2016, figure 7)."""

from typing import NamedTuple

from privpost.evaluation.claims import Claim, Why, from_checks
from privpost.evaluation.rows import one
from privpost.experiments.claim_helpers import estimate, unpaired
from privpost.experiments.foulds2016.war_logs import title

MAP_MEASURES = {"switches": "changes between months", "disagreement": "cells unlike the non-private map"}
# Two maps differ by chance as long as they do by no more than this many standard errors.
LIMIT = 4
STATES = "docs/foulds2016_war_logs.md#states-war_logs_states-figures-3-to-5-and-7"


UNSETTLED = "the chains that it needs have not converged"


def settled(table):
    """Return the rows of the collapsed sampler whose chains have converged: the others support no claim."""
    return table[(table["sampler"] == "collapsed") & table.converged.astype(bool)]


def map_claim(dataset, maps, used) -> Claim:
    """F16 (ours): OPS's released sample against Laplace's map; `used`: how many of few states each uses."""
    statement = f"{title(dataset)}: the map of OPS's final sample is noisier than the Laplace HMM's."
    if set(maps[maps.variant != "corrected"].method) != {"non_private", "laplace", "ops"}:
        test, stand_in = "maps of chains that have converged", dataset.startswith("iraq")
        return Claim(f"F16-{dataset}", "ours", statement, test, "not testable", stand_in=stand_in, reason=UNSETTLED)
    laplace = {kind: one(maps, method="laplace", variant="paper", summary=kind) for kind in ("mode", "final")}
    plain = {kind: one(maps, method="non_private", summary=kind) for kind in ("mode", "final")}
    # Another non-private chain as reference moves a map's disagreement by at most the distance between the two chains'
    # maps (triangle inequality), hence a difference of two methods by at most twice that.
    distance = float(plain["mode"].disagreement_mean)
    shifts = {"switches": 0.0, "disagreement": 2 * distance}
    checks, evidence = {}, {}
    gaps: dict[str, dict[str, Gap]] = {name: {} for name in MAP_MEASURES}
    for truncation in sorted(maps.truncation.dropna().unique()):
        ops = one(maps, method="ops", truncation=truncation, summary="final")
        for kind, shown in (("mode", "most frequent states"), ("final", "final sample")):
            for name, words in MAP_MEASURES.items():
                difference, error = unpaired(ops, laplace[kind], name)
                case = f"{words}, Laplace's {shown}, M = {truncation:g}"
                evidence |= estimate(f"OPS minus Laplace, {case}", difference, error, of=case)
                check = f"more {words} under OPS than in Laplace's {shown} (M = {truncation:g})"
                checks[check] = difference > LIMIT * error + shifts[name]
                if not checks[check]:
                    gaps[name][check] = Gap(difference, error, float(truncation))
    for kind, row in laplace.items():
        evidence[f"changes between months, Laplace, {kind}"] = row.switches_mean
        evidence[f"cells unlike the non-private map, Laplace, {kind}"] = row.disagreement_mean
    evidence["cells in which other non-private maps differ from the one of reference"] = distance
    evidence["its standard error"] = plain["mode"].disagreement_sem
    evidence["R-hat, all methods"] = ", ".join(sorted(set(maps.rhat_max.astype(str))))
    fields = {
        "id": f"F16-{dataset}",
        "place": "ours",
        "statement": statement,
        "test": "share of neighbouring months of a region whose states differ, and of cells that disagree with one "
        "non-private chain's map: OPS's final sample minus Laplace's most frequent states and "
        f"minus Laplace's final sample (like for like), above {LIMIT} standard errors over independent releases, for "
        "each truncation; for the disagreement also above twice the share of cells in which other non-private chains' "
        "maps differ from the one of reference, so that the mean over those, labels held, could not turn it",
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
    samples = used[(used.method == "ops") & (used["summary"] == "final")]
    samples = samples[samples.states_used_at_all < samples.n_states]
    in_use = {row.truncation: f"{row.states_used_at_all:.3g} of {row.n_states}" for row in samples.itertuples()}
    whys = _map_whys(gaps, distance, laplace["mode"], in_use)
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


def _map_whys(gaps: dict[str, dict[str, Gap]], distance: float, laplace, in_use: dict[float, str]) -> list[Why]:
    """Say of comparisons that fail, given by measure and check, how they fail; no experiment tells why.

    `in_use` has how many of the states OPS's final samples use, by truncation, where they do not use all.
    What a text says of differences is asked of each one that it explains, by their standard errors.
    """
    changes, unlike = gaps["switches"], gaps["disagreement"]
    alike = {check: gap for check, gap in changes.items() if gap.by_chance}
    smoother = {check: gap for check, gap in changes.items() if gap.opposite}
    no_farther = {check: gap for check, gap in unlike.items() if gap.by_chance}
    closer = {check: gap for check, gap in unlike.items() if gap.opposite}
    farther = {check: gap for check, gap in unlike.items() if gap.difference > LIMIT * gap.error}
    turned = {check: gap for check, gap in farther.items() if gap.difference <= 2 * distance}
    short = {check: gap for check, gap in farther.items() if check not in turned}
    left = [f"{in_use[m]} (M = {m:g})" for m in sorted({gap.truncation for gap in smoother.values()} & set(in_use))]
    states = f" States in use in OPS's samples: {', '.join(left)}." if left else ""
    others = f"other non-private chains' maps differ from it in {100 * distance:.2g} %"
    texts = [
        (
            smoother,
            f"The opposite at {_truncations(smoother)}: OPS's map is smoother than Laplace's, its share of changes "
            f"between months differs by {_span(smoother)} ({laplace.switches_mean:.1%} under Laplace), beyond {LIMIT} "
            f"standard errors.{states}",
        ),
        (
            alike,
            f"At {_truncations(alike)} no difference in changes between months is beyond {LIMIT} standard errors "
            f"({_span(alike)}, {laplace.switches_mean:.1%} under Laplace).",
        ),
        (
            closer,
            f"OPS's map is closer to the non-private one at {_truncations(closer)} ({_span(closer)} of the cells, "
            f"beyond {LIMIT} standard errors).",
        ),
        (
            no_farther,
            f"At {_truncations(no_farther)} no difference in cells unlike the non-private map is beyond {LIMIT} "
            f"standard errors ({_span(no_farther)} of the cells).",
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


def one_sample_claim(maps) -> Claim:
    """F13: OPS's released sample against the estimate from all of its own samples after burn-in (figure 7)."""
    ops = maps[maps.method == "ops"]
    checks, evidence = {}, {}
    for truncation in sorted(ops.truncation.unique()):
        final, mode = (one(ops, truncation=truncation, summary=kind) for kind in ("final", "mode"))
        difference, error = unpaired(final, mode, "switches")
        case = f"OPS's final sample minus its most frequent states, M = {truncation:g}"
        evidence |= estimate(f"changes between months, {case}", difference, error, of=case)
        check = f"OPS's final sample is noisier than its most frequent states (M = {truncation:g})"
        checks[check] = difference > LIMIT * error
    return from_checks(
        "F13-afghanistan",
        "section 5, figure 7",
        "Afghanistan: the states of OPS's final sample are noisy against an estimate from all of its samples after "
        "burn-in.",
        "share of neighbouring months of a region whose states differ: larger in OPS's final sample than in its most "
        f"frequent states by {LIMIT} standard errors over independent releases, for each truncation whose chains have "
        "converged (the most frequent states may not be released)",
        checks,
        evidence,
        untestable=UNSETTLED,
    )
