"""Settings under their names in other studies: what each name stands for, and names that are not aliases."""

from __future__ import annotations

import math

import pytest

from privpost.lab import grid, request
from privpost.lab.schema import SettingError


def digests(*words: str) -> list[str]:
    return [cell.digest for cell in request.understand(["-m", *words, "scale=smoke"]).cells]


@pytest.mark.parametrize(
    ("study", "given", "own"),
    [
        ("geumlek2017/tradeoff", "epsilon=1,0.5", f"log_epsilon=0,{math.log(0.5)}"),
        ("geumlek2017/logistic", "epsilon=null", "log_epsilon=null"),
        ("bernstein2018/utility", "log_epsilon=0", "epsilon=1"),
        ("foulds2016/adversary", "epsilon=0.1,1", "epsilons=[0.1],[1]"),
        ("fair_axis/beta_bernoulli", "method=laplace,ops", "methods=[laplace],[ops]"),
        ("fair_axis/beta_bernoulli", "method=all", "methods=all"),
        ("geumlek2017/logistic", "methods=[diffused,ops]", "method=diffused,ops"),
        ("geumlek2017/rdp_curves", "methods=[diffused,direct]", "method=[diffused,direct]"),
        ("geumlek2017/rdp_curves", "orders=range(2,4,0.5)", "order=2,2.5,3,3.5"),
        ("zhang2016/adult_network", "data=adult", "dataset=adult"),
        ("foulds2016/sampling_error", "seeds=1,2", "seed=1,2"),
    ],
)  # fmt: skip
def test_another_studys_name_is_taken_as_the_studys_own(checkout, study, given, own):
    assert digests(f"study={study}", given) == digests(f"study={study}", own)


def test_one_line_says_what_a_name_was_taken_as(checkout):
    asked = request.understand(["study=bernstein2018/utility", "log_epsilon=0"])
    assert asked.settings == ["epsilon=1.0"]
    (line,) = asked.notes
    assert line.startswith("log_epsilon is taken as epsilon, the exponential of it (")
    assert line.endswith(": epsilon=1.0")


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("study=geumlek2017/tradeoff epsilon=0", "taken as log_epsilon, its natural logarithm, but 0 has none"),
        ("study=fair_axis/beta_bernoulli method=laplce", "Did you mean 'laplace'"),
        ("study=zhang2016/linear_regression epsilon=1", "epsilon_target' .*nothing is scaled to it"),
        ("study=zhang2016/naive_bayes dataset=adult", "there is no setting 'dataset'"),
        ("study=bernstein2018/calibration method=gibbs", r"no setting 'method'\. Allowed: "),
        ("study=bernstein2018/calibration title=x", r"no setting 'title'\. Allowed: "),
        ("study=geumlek2017/rdp_curves order=2 orders=3", "order is given twice"),
        ("study=geumlek2017/rdp_curves order=2 order=3", "order is given twice"),
    ],
)  # fmt: skip
def test_what_is_no_other_name_is_refused(checkout, word, says):
    with pytest.raises(SettingError, match=says):
        request.understand(word.split())


def test_a_studys_own_name_is_never_taken_as_another(checkout):
    for study in grid.load_studies():
        for key in study.schema.fields:
            assert request.aliases.taken_as(study, key, lambda: pytest.fail("asked")) is None
