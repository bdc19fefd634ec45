"""Typed settings: normal forms, and errors that name key, value and what is allowed."""

from __future__ import annotations

import pytest

from privpost.datasets import catalogue
from privpost.lab import grid
from privpost.lab.schema import Choice, DatasetName, Flag, Integer, Real, Schema, SettingError, Text, Vector


@pytest.mark.parametrize(
    ("field", "value", "normal"),
    [
        (Real(), 1, 1.0),
        (Real(above=0, at_most=1), 1, 1.0),
        (Real(optional=True), None, None),
        (Integer(), 1e3, 1000),
        (Integer(at_least=0, at_most=0), 0.0, 0),
        (Choice("a", "b"), "a", "a"),
        (Choice("a", optional=True), None, None),
        (Flag(), True, True),
        (Text(), "x y", "x y"),
        (Vector(Real()), (1, 2), [1.0, 2.0]),
        (Vector(Vector(Integer(), empty=True)), [[1.0], []], [[1], []]),
    ],
)
def test_values_have_one_normal_form(field, value, normal):
    found = Schema(key=field).value("key", value, "here")
    assert found == normal
    assert type(found) is type(normal)


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        (Real(above=0), 0, "a number in (0, inf)"),
        (Real(at_least=0, below=1), 1, "a number in [0, 1)"),
        (Real(above=0, at_most=1), 1.5, "a number in (0, 1]"),
        (Real(above=1), 1, "a number in (1, inf)"),
        (Real(), float("nan"), "a number in (-inf, inf)"),
        (Real(), float("inf"), "a number in (-inf, inf)"),
        (Real(), "1", "a number in (-inf, inf)"),
        (Real(), True, "a number in (-inf, inf)"),
        (Real(), None, "a number in (-inf, inf)"),
        (Real(optional=True), "x", "a number in (-inf, inf) or null"),
        (Integer(at_most=None), 1.5, "a whole number"),
        (Integer(at_most=None), float("inf"), "a whole number"),
        (Integer(), True, "a whole number of at most 1000000000"),
        (Integer(), 1e21, "a whole number of at most 1000000000"),
        (Integer(at_least=1), 0, "a whole number of at least 1 and at most 1000000000"),
        (Integer(at_least=1, at_most=3), 4, "a whole number of at least 1 and at most 3"),
        (Choice("laplace", "gaussian"), "x", "one of laplace, gaussian"),
        (Choice("a"), ["a"], "one of a"),
        (Flag(), 1, "true or false"),
        (Text(), "", "text"),
        (Vector(Real(above=0)), 1.0, "a list of one or more, each a number in (0, inf)"),
        (Vector(Real(above=0)), [0.0], "a list of one or more, each a number in (0, inf)"),
        (Vector(Real(above=0)), [], "a list of one or more, each a number in (0, inf)"),
    ],
)
def test_a_value_that_is_not_allowed_is_named_with_its_range(field, value, allowed):
    with pytest.raises(SettingError) as error:
        Schema(key=field).value("key", value, "file.yaml")
    assert str(error.value).startswith(f"file.yaml: key is {value!r}, but must be {allowed}.")


def test_a_near_word_is_suggested():
    with pytest.raises(SettingError, match="Did you mean 'laplace'"):
        Schema(key=Choice("laplace", "gaussian")).value("key", "laplas", "here")


def test_an_unknown_key_suggests_the_nearest_and_lists_all():
    message = str(Schema(epsilon=Real(), order=Real()).unknown("epsilom", "here", others=["trials"]))
    assert message == (
        "here: there is no setting 'epsilom'. Did you mean 'epsilon'? Allowed: epsilon, order, trials."
    )  # fmt: skip


def test_a_data_set_is_known_by_its_name_or_its_description(checkout):
    schema = Schema(dataset=DatasetName())
    assert schema.value("dataset", {"name": "abalone", "rev": 1}, "here") == "abalone"
    with pytest.raises(SettingError, match=r"one of the data sets .*abalone.*Did you mean 'abalone'"):
        schema.value("dataset", "abalon", "here")


def test_a_study_takes_the_data_sets_of_its_kind_only(checkout):
    """Each of the others is refused by its schema, before anything is read; the studies' own grids are of the kind."""
    described = {name: catalogue.load(name).serves for name in catalogue.names()}
    assert all(described.values())
    for task in catalogue.TASKS:
        schema = Schema(dataset=DatasetName(task=task))
        for name, serves in described.items():
            if task in serves:
                assert schema.value("dataset", name, "here") == name
            else:
                with pytest.raises(
                    SettingError, match=f"^here: dataset is '{name}', but must be one of the data sets "
                ):
                    schema.value("dataset", name, "here")
    fields = [study.schema.fields["dataset"] for study in grid.load_studies() if "dataset" in study.schema]
    assert len(fields) > 5
    assert all(field.task in catalogue.TASKS for field in fields)
