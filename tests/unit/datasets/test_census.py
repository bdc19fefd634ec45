"""Census extracts and the linear regression on them."""

import dataclasses
import lzma
from pathlib import Path

import numpy as np
import pytest

from privpost.datasets import catalogue, census, census_1980, fetch, ipums_us, prepared
from privpost.mechanisms.draws.linear import LinearSampler
from privpost.models.regression.linear import LinearRegression, Moments
from privpost.privacy.accounting.costs import Cost

HEADER = (
    '"twoa.agefstm","twoa.agem","twoa.blackm","twoa.educm","twoa.hispm","twoa.incomed","twoa.kidcount",'
    '"twoa.marital","twoa.othracem","twoa.samesex","twoa.workedm"\n'
)
ROWS = "18,27,FALSE,12,FALSE,33597.5,2,0,1,FALSE,TRUE\n19,25,FALSE,12,FALSE,NA,2,2,1,FALSE,TRUE\n"


def declared(name, **changes):
    return dataclasses.replace(catalogue.load(name), **changes)


def packed(tmp_path, text):
    path = tmp_path / "extract.csv.xz"
    path.write_bytes(lzma.compress(text.encode()))
    return {"extract.csv.xz": path}


def test_rows_without_an_income_are_left_out(tmp_path):
    arrays = census_1980.parse(packed(tmp_path, HEADER + ROWS), declared("census_1980", settings={"rows": 1}))
    assert {name: values.tolist() for name, values in arrays.items()} == {
        "mother_age_at_first_birth": [18],
        "mother_age": [27],
        "mother_education": [12],
        "mother_hispanic": [0],
        "children": [2],
        "first_two_same_sex": [0],
        "mother_works": [1],
        "income": [33597.5],
    }


@pytest.mark.parametrize(
    "text, message",
    [
        (HEADER.replace("educm", "x") + ROWS, r"missing columns twoa\.educm; needed are"),
        (HEADER + "18,27\n", "line 2: 2 fields, expected 11"),
        (HEADER + ROWS.replace("33597.5", "much"), "line 2: not a number"),
        (HEADER + ROWS.replace("33597.5", "inf"), r"line 2: not a number \('inf' is not a finite number"),
        (HEADER, "no row without gaps"),
        (HEADER + ROWS, "1 rows with an income, expected 334535"),
    ],
)
def test_a_malformed_extract_is_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        census_1980.parse(packed(tmp_path, text), declared("census_1980"))


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "extract.csv.xz"
    path.write_bytes(b"not packed")
    with pytest.raises(ValueError, match="damaged"):
        census_1980.parse({"extract.csv.xz": path}, declared("census_1980"))


def test_a_wrong_ipums_file_names_the_missing_columns(tmp_path):
    path = tmp_path / "ipums_us.csv"
    path.write_text("AGE,SEX,income\n40,1,1000\n")
    with pytest.raises(ValueError, match=r"missing columns age, sex, single, .*automobiles; needed are .*found AGE"):
        ipums_us.parse({"ipums_us.csv": path}, declared("ipums_us"))
    columns = list(declared("ipums_us").public["bounds"])
    assert len(columns) == 14
    ones, other, gaps = ["1"] * 14, ["0"] * 14, [""] * 14
    other[columns.index("family_size")] = "2"
    path.write_text("".join(f"{','.join(row)},9\n" for row in (columns, ones, other, gaps)).replace(",9", ",extra", 1))
    arrays = ipums_us.parse({"ipums_us.csv": path}, declared("ipums_us"))
    assert list(arrays) == columns
    assert all(len(values) == 2 and values[0] == 1 for values in arrays.values())


def test_the_users_own_file_is_in_the_identity(tmp_path, monkeypatch):
    conf = Path("conf").resolve()
    monkeypatch.chdir(tmp_path)
    absent = catalogue.load("ipums_us", conf)
    assert absent.files[0].sha256 == catalogue.ABSENT
    with pytest.raises(fetch.FetchError, match=r"your own file, as conf/dataset/ipums_us\.yaml describes it"):
        fetch.fetch(absent, folders=[])
    path = tmp_path / catalogue.RAW / "ipums_us" / "ipums_us.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(absent.public["bounds"])
    identities = []
    for other in ("2", "3"):
        rows = ([*["0"] * 10, "2", *["0"] * 3], ["1"] * 14, [other, *["1"] * 13])
        path.write_text("\n".join(map(",".join, (columns, *rows))) + "\n")
        found = catalogue.load("ipums_us", conf)
        identities.append(found.identity()["sha256"])
        assert fetch.fetch(found) == [path.relative_to(tmp_path)]
        prepared.prepare(found)
        assert prepared.read("ipums_us", found)["age"].tolist() == [0, 1, float(other)]
    assert identities[0] != identities[1] != absent.identity()["sha256"]


def test_the_users_folder_is_looked_into_and_a_new_extract_replaces_the_old(tmp_path, monkeypatch, capsys):
    conf = Path("conf").resolve()
    monkeypatch.chdir(tmp_path)
    path = tmp_path / catalogue.OWN / "ipums_us" / "ipums_us.csv"
    path.parent.mkdir(parents=True)
    for ages in ([0, 40], [0, 41]):
        write_extract(path, conf, age=ages)
        found = catalogue.load("ipums_us", conf)
        assert fetch.findable(found)
        fetch.fetch(found)
        prepared.prepare(found)
        assert prepared.read("ipums_us", found)["age"].tolist() == ages
    assert "outside" not in capsys.readouterr().err


def write_extract(path: Path, conf: Path | None = None, **columns: list[float]) -> None:
    """Write an extract: 0, 1, 0, ... where no values are given, and family sizes of 1, 2, 1, ..."""
    names = list(catalogue.load("ipums_us", conf).public["bounds"])
    length = max(map(len, columns.values()))
    plain = {name: [i % 2 + (name == "family_size") for i in range(length)] for name in names}
    table = {**plain, **columns}
    path.write_text(
        "\n".join([",".join(names), *(",".join(f"{table[n][i]}" for n in names) for i in range(length))]) + "\n"
    )


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"income": [1000, 9999999, 5, 9999999]},
            r"income is 9999999 .2 times., beyond \[0, 75000\]: probably",
        ),
        ({"income": [1000, 99999]}, "income is 99999 .1 times."),
        ({"education": [12, 99]}, "education is 99 .1 times."),
        ({"age": [30, 999]}, "age is 999 .1 times."),
        ({"sex": [1, 2]}, "sex has the value 2, but must be 0 or 1, as its bounds are"),
        ({"married": [0, 0.5]}, "married has the value 0.5, but must be 0 or 1"),
        ({"hours": [40, 40]}, "hours is 40 in every row"),
        # Clipped it is constant.
        ({"family_size": [0, 1]}, "family_size is 1 in every row"),
    ],
)
def test_codes_that_are_no_values_are_refused(tmp_path, columns, said):
    path = tmp_path / "ipums_us.csv"
    write_extract(path, **columns)
    with pytest.raises(ValueError, match=said) as caught:
        ipums_us.parse({"ipums_us.csv": path}, declared("ipums_us"))
    assert "\n" not in str(caught.value)


def test_values_a_little_outside_their_bounds_are_kept_and_counted(tmp_path):
    path = tmp_path / "ipums_us.csv"
    write_extract(path, income=[1000, 80000, 75000, 76000], family_size=[1, 2, 3, 25])
    arrays = ipums_us.parse({"ipums_us.csv": path}, declared("ipums_us"))
    assert arrays["income"].tolist() == [1000, 80000, 75000, 76000]
    size, income = prepared.outside(arrays, declared("ipums_us"))
    assert size.startswith("family_size: 1 of 4 values (25.00%) lie outside the declared bounds [1, 20]")
    assert income.startswith("income: 2 of 4 values (50.00%)") and income.endswith("from 1000 to 80000")


def test_features_and_labels_keep_their_public_bounds():
    dataset = declared("census_1980")
    rng = np.random.default_rng(1)
    arrays = {
        name: rng.uniform(2 * low - high, 2 * high, 300) for name, (low, high) in dataset.public["bounds"].items()
    }
    features, labels = census.regression(arrays, dataset)
    assert features.shape == (300, 8)
    # One constant and seven features at ±1, divided by √8.
    assert np.linalg.norm(features, axis=1).max() <= 1 + 1e-12
    assert labels.min() == 0
    assert labels.max() == 1
    # Each example depends on itself alone.
    half = census.regression({name: values[:150] for name, values in arrays.items()}, dataset)
    assert np.array_equal(half[0], features[:150])


# Linear regression


def toy(n=60, d=3, seed=2):
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1, 1, (n, d)) / d**0.5
    return features, features @ rng.normal(size=d) + 0.1 * rng.normal(size=n)


def test_posterior_is_ridge_regression():
    features, labels = toy()
    mean, precision = LinearRegression(3, 3.0, 0.25).posterior(Moments.of(features, labels).statistics)
    # Ridge as least squares on an augmented design.
    augmented = np.vstack([features / 0.5, 3.0**0.5 * np.eye(3)])
    expected = np.linalg.lstsq(augmented, np.concatenate([labels / 0.5, np.zeros(3)]), rcond=None)[0]
    assert np.allclose(mean, expected, rtol=1e-10)
    assert np.allclose(precision, augmented.T @ augmented, rtol=1e-12)
    with pytest.raises(ValueError, match="prior_precision is 0"):
        LinearRegression(3, 0, 0.25)


def test_statistics_are_the_moments_and_give_the_likelihood():
    features, labels = toy()
    model = LinearRegression(3, 1.0, 0.25, label_bound=5.0)
    data = np.column_stack([features, labels])
    statistics = model.sufficient_statistics(data)
    assert np.allclose(statistics, Moments.of(features, labels).statistics, rtol=1e-12)
    assert np.allclose(model.sufficient_statistics(data.reshape(3, 20, 4)).sum(axis=0), statistics, rtol=1e-12)
    weights = np.random.default_rng(6).normal(size=(5, 3))
    expected = -((labels - weights @ features.T) ** 2).sum(axis=1) / (2 * 0.25)
    assert np.allclose(model.log_likelihood(weights, statistics), expected, rtol=1e-10)
    with pytest.raises(ValueError, match=r"feature_bound is 1\.0 .*the records reach 2 and 0"):
        model.sufficient_statistics([[0.0, 2.0, 0.0, 0.0]])
    with pytest.raises(ValueError, match="the records reach 0 and 6"):
        model.sufficient_statistics([[0.0, 0.0, 0.0, -6.0]])


def test_moments_give_the_error_on_the_rest():
    features, labels = toy()
    test = Moments.of(features, labels).without(Moments.of(features[:20], labels[:20]))
    weights = np.random.default_rng(3).normal(size=(4, 3))
    residuals = labels[20:] - weights @ features[20:].T
    assert np.allclose(test.mean_squared_error(weights), (residuals**2).mean(axis=1), rtol=1e-10)


def test_cost_covers_random_neighbours_and_is_nearly_reached():
    radius, noise = 2.0, 0.5
    cost = LinearSampler(LinearRegression(2, noise_variance=noise), 10, radius).cost()
    assert cost == Cost("pure", (1 + 2) ** 2 / 0.5)
    # Largest change of a record's log-likelihood over the ball: L, attained by a perfectly and a worst fitted record.
    rng = np.random.default_rng(4)
    weights = rng.normal(size=(4000, 2))
    weights *= (radius * rng.uniform(size=4000) ** 0.5 / np.linalg.norm(weights, axis=1))[:, None]
    weights = np.concatenate([weights, [[radius, 0], [-radius, 0]]])
    records = rng.uniform(-1, 1, (200, 3))
    records = np.concatenate([records, [[1, 0, -1], [0, 0, 0]]])
    records[:, :2] /= np.maximum(np.linalg.norm(records[:, :2], axis=1), 1)[:, None]
    log_likelihood = -((records[:, 2] - weights @ records[:, :2].T) ** 2) / (2 * noise)
    change = np.ptp(log_likelihood, axis=1).max()
    assert 2 * change <= cost.epsilon
    assert 2 * change == pytest.approx(cost.epsilon, rel=1e-9)


def test_release_stays_in_the_ball():
    statistics = Moments.of(*toy()).statistics
    for radius in (0.2, 5.0):
        drawn = LinearSampler(LinearRegression(3, 1.0, 0.01), 60, radius).draw(statistics, np.random.default_rng(5), 5)
        assert np.linalg.norm(drawn.values, axis=1).max() <= radius
        assert np.all((drawn.info > 0) & (drawn.info <= 1))
    with pytest.raises(ValueError, match="radius is 0"):
        LinearSampler(LinearRegression(3), 60, 0.0)


def test_the_ball_is_the_largest_within_the_budget():
    model = LinearRegression(2, noise_variance=0.02, label_bound=0.5)
    assert LinearSampler.calibrate(model, 60, Cost("pure", 50.0)).radius == pytest.approx(0.5, rel=1e-12)
    # Features that reach twice as far halve the ball.
    wide = LinearRegression(2, noise_variance=0.02, feature_bound=2.0, label_bound=0.5)
    assert LinearSampler.calibrate(wide, 60, Cost("pure", 50.0)).radius == pytest.approx(0.25, rel=1e-12)
    with pytest.raises(ValueError, match=r"budget is .*needs an epsilon > 12\.5, the labels' share"):
        LinearSampler.calibrate(model, 60, Cost("pure", 12.5))
