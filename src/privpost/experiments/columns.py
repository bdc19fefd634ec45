"""Meanings of columns and settings that several studies share."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from privpost.experiments import ranges
from privpost.lab.schema import Setting
from privpost.lab.study import Study

# Each value is `meaning [unit]`, or a setting that has a meaning. A study's own TABLES and settings take precedence.
COLUMNS: dict[str, str | Setting] = {
    # Sizes and seeds of every study
    "trials": "independent repeats of the experiment [count]",
    "block": "trials that share a stream of random numbers [count]",
    "seed": "root of all random streams",
    "rev": "number that is raised when a study's numbers change on purpose",
    # What a row is about
    "method": ranges.METHOD,
    "variant": ranges.VARIANT,
    "model": ranges.MODEL,
    "dataset": ranges.DATASET,
    "n": ranges.N,
    "epsilon": ranges.EPSILON,
    "delta": ranges.DELTA,
    "order": ranges.ORDER,
    "coefficient": ranges.WEIGHT,
    "beta": ranges.BETA,
    "radius": ranges.RADIUS,
    "temperature": "T, by which OPS divides the log-density",
    "power": "exponent of the likelihood in the posterior that is sampled",
    "asymptote": "order at and above which ε is infinite",
    "epsilon_record": "ε of a release when a whole record is substituted [nats]",
    "n_train": "records of the training part [records]",
    "stand_in": "whether the data stand in for the paper's own, which are not public",
    "uses_private_metadata": "whether bounds, levels or counts were read off the records; no ε covers this",
    "private": "whether a finite ε covers the method",
    "parameter": "parameter of the model that the row is about",
    "theta": "parameter of the model",
    "density": "probability density of theta",
    "nodes": "nodes of the graph [count]",
    "in_degree": "parents of a node [count]",
    "first": "first method of the comparison",
    "second": "method that the first one is compared with",
    "first_variant": "variant of the first method",
    "second_variant": "variant of the second method",
    # Errors and scores
    "metric": "what `mean` is the mean of",
    "mean": "mean of the row's metric over repeats",
    "sem": "standard error of the row's mean",
    "statistic": "estimate that is judged: one `sample`, or the posterior `mean`",
    "difference_mean": "paired difference, first less second",
    "excess_mean": "error beyond the true posterior's, paired over trials",
    "accuracy_mean": "share of test records that are classified correctly [share]",
    "per_event_mean": "log-likelihood per held-out event, mean over splits [nats per event]",
    "log_likelihood_mean": "log-likelihood of the held-out cells, mean over splits [nats]",
    "clipped_share": "share of values that were clipped to their bounds [share]",
    "truncated_share": "share of counts that were truncated to the allowed range [share]",
    "rejected_share": "share of releases from which the method could give no posterior [share]",
    # Calibration
    "ks": "Kolmogorov-Smirnov distance of the true parameter's quantiles from uniform [probability]",
    "ks_limit": "Kolmogorov-Smirnov distance beyond which a test of one row at 5 % rejects [probability]",
    "ks_visible": "Kolmogorov-Smirnov distance that such a test detects with a chance of 80 % [probability]",
    "p_value": "p-value of the Kolmogorov-Smirnov test [probability]",
    "z2": "mean z² of the true parameters, where z is the normal quantile of their posterior probability; 1 under "
    "calibration, larger if posteriors are too narrow",
    "z2_p": "p-value of the two-sided χ² test of the sum of z² [probability]",
    "z2_values": "effective number of independent values of z², over trials and parameters [count]",
    "z2_of": "parameters whose z² are tested together",
    "sd_seen_narrow": "smallest relative shortfall of a posterior's standard deviation that a 5 % test of one row's z² "
    "detects with a chance of 80 % [share]",
    "sd_seen_wide": "smallest relative excess of a posterior's standard deviation that such a test detects with that "
    "chance [share]",
    "sd_of_prior": "standard deviation of the noise-aware posterior over the prior's (in `bernstein2018`, over that of "
    "the drawn true parameters), root mean square over trials; from 0.95 on the row tests the prior only [share]",
    "prior_p": "p-value of the z² test of the true parameters against their prior; a small value means that by chance "
    "they are spread too widely or too narrowly [probability]",
    "u": "quantile of the true parameter in the posterior [probability]",
    "ecdf": "share of the trials whose quantile is at most `u` [share]",
    # Chains and Monte Carlo
    "sampling": "`exact` for independent draws from the stated law, `mcmc` for draws of a Markov chain, `steps` or "
    "`paid updates` for Langevin steps or Gibbs updates that are paid for one by one",
    "sampler": "Markov chain that makes the draws; `exact` or empty where no chain runs",
    "n_repeats": "repeats behind the row's mean [count]",
    "n_trials": "trials behind the row [count]",
    "n_splits": "random splits into training and held-out data [count]",
    "n_draws": "draws from a posterior [count]",
    "n_chains": "chains per release [count]",
    "proposals": "proposals per exact draw, mean [count]",
    "expected_proposals": "proposals per exact draw that theory gives [count]",
    "rhat_max": "largest R-hat of all traces; `exact` where no chain runs",
    "rhat_median": "median R-hat over trials",
    "ess_min": "smallest effective sample size [draws]",
    "ess_bulk": "smallest bulk effective sample size of the traces behind `rhat_max` [draws]",
    "converged": "whether R-hat is below 1.05 or no chain has to converge",
    "guarantee": "`unconditional`, or `if_converged`, where ε holds only for a converged chain; `none` where no ε "
    "covers the row",
    "worst_case_epsilon": "ε of the release when the chain has not converged; infinite or empty where nothing bounds "
    "it [nats]",
}


# Axis labels of columns whose meaning is too long for an axis label.
LABELS = {
    "are": "asymptotic relative efficiency",
    "bound_ratio": "truncated concentrated DP bound over the exact supremum",
    "kl_gain_mean": "KL divergence, noise-naive less noise-aware",
    "ks": "KS distance of the quantiles from uniform",
    "log_joint_mean": "log joint density of states and counts",
    "loss_mean": "loss of log-likelihood per event against non-private",
    "method": "method",
    "one_draw_loss_mean": "loss of one draw's score against non-private",
    "predictive_loss_mean": "loss of the predictive score per event against non-private",
    "rise_mean": "mean squared error above that at the smallest prior precision",
    "sd_of_prior": "posterior sd over prior sd",
    "sd_seen_narrow": "sd too narrow by so much is seen",
    "sd_seen_wide": "sd too wide by so much is seen",
    "total_variation": "total variation from the exact posterior",
    "z2": "mean z² of the true parameters",
}


class Meaning(NamedTuple):
    """The meaning of a column or setting, and its unit, which is "" for names, truth values and plain numbers."""

    text: str
    unit: str

    def label(self, name: str) -> str:
        """Return an axis label with the unit, from LABELS or else from the start of the meaning."""
        text = LABELS.get(name) or re.sub(r" \([^)]*\)", "", re.split(r"[;:]", self.text)[0])
        text = re.sub(r"`(\w+)`", lambda match: match[1].removesuffix("_mean").replace("_", " "), text)
        return f"{text} [{self.unit}]" if self.unit else text


def of_column(study: Study, table: str, column: str) -> Meaning | None:
    """Return the meaning of a column of one of a study's tables, or None if it has no meaning.

    The meaning is looked up in the table's entry in TABLES, the study's settings, the other tables' entries and
    `COLUMNS`, in this order. A column `<x>_sem` is the standard error of `<x>_mean` or of `<x>`.
    """
    tables: dict[str, dict[str, str]] = getattr(study.module(), "TABLES", {})
    places = (tables.get(table, {}), study.schema.fields, *tables.values(), COLUMNS)
    if (known := _first(column, places)) is not None:
        return known
    if column.endswith("_sem"):
        base = column.removesuffix("_sem")
        for name in (f"{base}_mean", base):
            if (known := of_column(study, table, name)) is not None:
                return Meaning(f"standard error of `{name}`", known.unit)
    return None


def of_setting(study: Study, name: str) -> Meaning | None:
    """Return the meaning of a study's setting, or None if the setting has no meaning."""
    return _first(name, (study.schema.fields, COLUMNS))


def _first(name: str, places: Iterable[Mapping[str, str | Setting]]) -> Meaning | None:
    for entry in (place[name] for place in places if name in place):
        if isinstance(entry, str):
            text, _, unit = entry.removesuffix("]").partition(" [")
            return Meaning(text, unit)
        if entry.says:
            return Meaning(entry.says, entry.unit)
    return None
