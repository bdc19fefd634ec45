"""Settings that studies of chains on war logs share."""

from privpost.experiments.foulds2016.event_methods import REMEMBERED
from privpost.experiments.ranges import BURN_IN, DATASET, VARIANT
from privpost.lab.schema import Choice, DatasetName, Integer, Real

COUNTS = DatasetName(task="counts", says=DATASET)
N_STATES = Integer(at_least=2, says="states of the hidden Markov model; 1 for naive Bayes")
SAMPLER = "`paper`, explicit from a random start, or `collapsed`, from annealed ones; empty where no chain runs"
# Chains on exact or noisy counts.
CHAINS = {
    "iterations": Integer(at_least=2, says="iterations of a chain, all of which OPS's temperature pays for"),
    "burn_in": Integer(at_least=1, under="iterations", says=BURN_IN.says),
    "rounds": Integer(at_least=2, says="rounds of the collapsed sampler"),
    "rounds_burn_in": Integer(at_least=1, under="rounds", says="first rounds, which are left out"),
    "resplits": Integer(at_least=0, says="merges and splits of states in a round of the burn-in"),
    "replicas": Integer(at_least=1, says="replicas at higher temperatures with which a chain swaps, itself included"),
    "remembered": Choice(*REMEMBERED, says="methods whose chains remember sets of cells; `all`: laplace, non_private"),
    "agree": Integer(at_least=1, says="islands that must meet the best joint to end the search of such a chain"),
    "islands": Integer(at_least=1, says="islands after which that search ends, met or not"),
    "hottest": Real(at_least=1, says="temperature at which the annealed search for a start begins"),
    "diagnostic_chains": Integer(at_least=1, says="chains of the first split, each from its own random start"),
    "sampler": Choice("paper", "collapsed", says=SAMPLER),
    "variant": Choice("paper", "corrected", says=VARIANT),
}
# OPS's chains.
TEMPERED = {
    "ops_rounds": Integer(at_least=2, says="rounds of OPS's chain"),
    "search_limit": Real(at_least=1, says="temperature of OPS above which its chains cool once and search no further"),
}
