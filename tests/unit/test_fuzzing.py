"""Random overrides, study files, declarations and data files: one clear error or a right result, nothing in between.

Every search is derandomised, so that each run tries the same cases. The cases add up to about 800.
"""

from __future__ import annotations

import copy
import dataclasses
import gzip
import io
import lzma
import re
import signal
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privpost.commands import cli
from privpost.datasets import catalogue, prepared
from privpost.datasets.files import checksum
from privpost.lab import grid, request, store, study
from privpost.lab.schema import SettingError

ROOT = Path(__file__).resolve().parents[2]
# A case that takes longer (in seconds) hangs: the slowest takes a tenth of a second on an idle machine.
HANGS = 20


def fuzz(cases: int):
    """Return the settings of a search of that many cases, the same ones in every run."""
    return settings(
        max_examples=cases,
        derandomize=True,
        database=None,
        deadline=None,
        # The toy project is made once for all cases, each of which leaves it as it was.
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@contextmanager
def no_hang():
    """Fail when the block does not end."""

    def stop(number, frame):
        raise AssertionError("hangs")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(HANGS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def names_one_of(message: str, parts) -> bool:
    """Return whether a message has one of some texts in it: quoted or, unless it is a mere letter, as it is."""
    texts = [str(part) for part in parts]
    return any(repr(text) in message or (len(text) > 1 and text in message) for text in texts)


def keys_in(value) -> list:
    """Return the keys of all mappings in a value of YAML."""
    if isinstance(value, list):
        return [key for item in value for key in keys_in(item)]
    return [key for own, item in value.items() for key in (own, *keys_in(item))] if isinstance(value, dict) else []


# Overrides on the command line

WORDS = st.sampled_from([
    "1", "2", "0", "-1", "3.5", "1e3", "20", "30", "1e308", "1e400", "nan", "inf", "-inf", "null", "true", "a", "b",
    "x", "n", "a,b", "1,2", "1,1", "[2,3]", "[2,2]", "[[2]]", "[]", "[1,2", "{a:1}", "{start:2,stop:3,num:3}", "{",
    "}", "range(1,4)", "range(1,1e12)", "range(1,2,0)", "range(1,nan)", "range(1,inf)",
    "choice(1,2)", "choice()", "sort(2,1)", "interval(1,2)",
    "glob(*)", "shuffle(1,2)", "tag(t,1)", "int(2.5)", "str(1)", "bool(x)", "extend_list(1)", "'x'", "\"", "\\",
    "${level}", "${oc.env:HOME}", "${nothing}", "???", "1_000", "0x10", "\u0669", "\u0661", "../../x", "=", "@x",
    "9999999999999999999999999999999999999999", "", "a b", "\n", "a\u0000b"
])  # fmt: skip
VALUES = st.one_of(
    WORDS,
    st.floats().map(repr),
    st.integers().map(str),
    st.text(max_size=12),
    st.lists(st.one_of(WORDS, st.integers(-3, 9).map(str)), max_size=3).map(lambda words: f"[{','.join(words)}]"),
)
SETTINGS = ("level", "method", "note", "order", "variant", "trials", "block", "seed", "rev")
KEYS = st.one_of(
    st.sampled_from(SETTINGS),
    st.sampled_from([
        "+order", "++order", "~order", "within.order", "++within.order", "sweep.level", "sweep", "within", "common",
        "smoke", "shard", "title", "fresh", "dataset", "level.x", "order[0]", "level@x", "figures", "scale",
        "study", "mirrors", "Level", "levl", "hydra.job.name", "hydra/launcher", "hydra", "-m", ""
    ]),
    st.text(max_size=6),
)  # fmt: skip
OVERRIDES = st.lists(st.builds("{}={}".format, KEYS, VALUES), max_size=3)


@fuzz(160)
@given(words=OVERRIDES, multirun=st.booleans())
def test_overrides_are_understood_or_refused_by_name(toy, words, multirun):
    """What is understood is a list of valid cells, each of which its own command gives again, digest and all."""
    argv = ["-m"] * multirun + ["study=toy/curve", *words]
    try:
        with no_hang():
            asked = request.understand(argv)
    except SettingError as error:
        # The whole override, its value or its key, without what Hydra's grammar puts before it.
        parts = [part for word in words for part in (word, request.key_of(word), word.split("=", 1)[1])]
        assert names_one_of(str(error), parts), str(error)
        return
    assert len(asked.cells) >= 1
    assert multirun or len(asked.cells) == 1
    for cell in asked.cells[:3]:
        assert cell.path.parent.parts[-3:] == ("cells", "toy", "curve")
        (again,) = request.understand(cell.command()).cells
        assert again.digest == cell.digest
        assert cell.settings["method"] in ("a", "b")
        assert 0 < cell.settings["level"] < np.inf
        assert all(1 < order < np.inf for order in cell.within["order"])
        assert cell.sizes["trials"] % cell.sizes["block"] == 0


SMALL = st.sampled_from(
    ["1", "2", "0.5", "[2,3]", "3", "a", "b", "x", "y", "n", "m", "20", "10", "-1", "c", "null", "1e3"]
)


@fuzz(25)
@given(
    words=st.lists(
        st.builds("{}={}".format, st.sampled_from([*SETTINGS, "levl"]), st.one_of(SMALL, VALUES)), max_size=2
    )
)
def test_a_command_line_gives_one_whole_result_or_none(toy, drawn, words):
    """Through Hydra: status 0 and the one cell that was understood, or status 2, one message and an unchanged store."""
    argv = ["study=toy/curve", *(word for word in words if not word.startswith(("trials", "block")))]
    folder = Path("build/paper/cells/toy/curve")
    before = set(folder.glob("*"))
    out, err = io.StringIO(), io.StringIO()
    with no_hang(), redirect_stdout(out), redirect_stderr(err):
        status = cli.main(argv)
    if status == 0:
        (cell,) = request.understand(argv).cells
        result = store.read(cell.path, cell.digest)
        assert np.isfinite(result.arrays["mean"]).all()
        assert set(folder.glob("*")) == before | {cell.path}
    else:
        assert status == 2
        assert err.getvalue().startswith("privpost: ")
        assert "Traceback" not in err.getvalue()
        assert set(folder.glob("*")) == before


# Study files

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.sampled_from(["a", "b", "x", "y", 1, 2, 3, 0, -1, 10**400, 1e308, 2.5, 20, 10, "os.path", "toystudy", "smoke"]),
)  # fmt: skip
NESTED = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.sampled_from(["start", "stop", "num", "spacing", "level", "method", "order", "sweep", "trials"]),
                st.text(max_size=3), st.integers(), st.none(),
            ),
            inner, max_size=4,
        ),
    ),
    max_leaves=5,
)  # fmt: skip
PLACES = st.one_of(
    st.sampled_from(
        ["title", "paper", "claim", "reads", "shards", "tolerance", "sweep", "within", "common", "smoke", "trials",
         "block", "rev", "seed", "level", "method", "order", "dataset", "scale", "mirrors"]
    ).map(lambda key: (key,)),
    st.text(max_size=5).map(lambda key: (key,)),
    st.tuples(
        st.sampled_from(["sweep", "within", "smoke"]),
        st.sampled_from(["level", "method", "order", "variant", "trials", "within", "sweep", "block", "common", "rev"]),
    ),
)  # fmt: skip


@fuzz(120)
@given(changes=st.lists(st.tuples(PLACES, NESTED), min_size=1, max_size=2), scale=st.sampled_from(["paper", "smoke"]))
def test_a_study_file_is_a_valid_grid_or_refused_by_name(toy, changes, scale):
    """What is accepted expands to cells whose digests and paths are all different."""
    config = study.compose("toy/curve", scale)
    # What is put in, and what goes for it.
    keys = {key for place, value in changes for key in (*place, *keys_in(value))}
    for place, value in changes:
        inner = config
        for key in place[:-1]:
            inner = inner.setdefault(key, {}) if isinstance(inner, dict) else inner
        if isinstance(inner, dict):
            keys.update(keys_in(inner.get(place[-1])))
            inner[place[-1]] = value
    try:
        with no_hang(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(study, "compose", lambda name, scale: config)
            cells = grid.expand(toy.study(scale))
    except SettingError as error:
        assert str(error).startswith("conf/study/toy/curve.yaml")
        assert names_one_of(str(error).removeprefix("conf/study/toy/curve.yaml"), keys), str(error)
        return
    assert cells
    assert len({cell.digest for cell in cells}) == len({cell.path for cell in cells}) == len(cells)
    assert all(cell.command() for cell in cells)


BROKEN = [b"\tx: [", b"level: ]", b"x: ${nothing}", b"x: ${oc.env:NOPE_NOPE}", b"\xff\xfe", b"\x00", b"level: 3",
          b"defaults:\n  - nope", b"1: 2", b"? [1, 2]\n: 3", b"x: ???", b"{: {: {:"]  # fmt: skip


@pytest.mark.parametrize("line", BROKEN)
def test_a_study_file_that_is_no_yaml_is_named(toy, line):
    toy.yaml.write_bytes(toy.yaml.read_bytes() + b"\n" + line + b"\n")
    with pytest.raises(SettingError, match=r"^conf/study/toy/curve\.yaml") as caught:
        grid.expand(toy.study())
    assert "\n" not in str(caught.value)


# Declarations of data sets

DECLARED = yaml.safe_load((ROOT / "conf/dataset/abalone.yaml").read_text())
ENTRIES = st.one_of(
    st.sampled_from(sorted(DECLARED)).map(lambda key: (key,)),
    st.sampled_from(sorted(DECLARED["files"][0])).map(lambda key: ("files", 0, key)),
    st.sampled_from(["bounds", "levels"]).map(lambda key: ("public", key)),
    st.sampled_from(["length", "rings"]).map(lambda key: ("public", "bounds", key)),
    st.just(("public", "levels", "sex")),
    st.text(max_size=4).map(lambda key: (key,)),
)


@fuzz(200)
@given(entry=ENTRIES, value=NESTED)
def test_a_declaration_of_a_data_set_is_whole_or_refused_by_name(tmp_path, entry, value):
    raw = copy.deepcopy(DECLARED)
    inner = raw
    for key in entry[:-1]:
        inner = inner[key]
    inner[entry[-1]] = value
    path = tmp_path / "dataset" / "abalone.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(raw))
    try:
        dataset = catalogue.load("abalone", tmp_path)
    except ValueError as error:
        assert str(error).startswith(str(path))
        # Fields that there are not stand as they are.
        parts = [*entry, *keys_in(value), f"unknown {entry[-1]}"]
        assert names_one_of(str(error).removeprefix(str(path)), parts), str(error)
        return
    assert grid.canonical(dataset.identity())


# Data files


def adult_row(label: str) -> str:
    return (
        "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, "
        f"Cuba, {label}"
    )


def idx(array: np.ndarray) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


CENSUS = "twoa.agefstm,twoa.agem,twoa.educm,twoa.hispm,twoa.kidcount,twoa.samesex,twoa.workedm,twoa.incomed"
IPUMS = ("age", "sex", "single", "married", "education", "disability", "native", "hours", "years_residing",
         "own_dwelling", "family_size", "children", "automobiles", "income")  # fmt: skip
AFGHAN = ("date", "region", "type", "category", "FriendlyWIA", "FriendlyKIA", "HostNationWIA", "HostNationKIA",
          "CivilianWIA", "CivilianKIA", "EnemyWIA", "EnemyKIA", "EnemyDetained")  # fmt: skip
IRAQ = ("governorate", "year_month", "SIGACT", "df", "idf", "suicide", "ied_attack", "ied_clear")


def table(columns, *rows: str) -> bytes:
    return "\n".join([",".join(columns), *rows, ""]).encode()


SIDES = ("friendly_or_host", "civilian", "enemy")
# An event of the release: a text of two lines with a quote, and a place in the country.
AFGHAN_RELEASE = (
    b'"K","2004-01-01 00:00:00","Enemy Action","Direct Fire","T","x","a ""quoted"" text,\ntwo lines \xe9","RC EAST",'
    b'"","","","","","0","1","","0","0","0","2","0","0","","34.25","69.5","","","","","ENEMY","RED","SECRET"\n'
)
COUNTED = [("type", "enemy action"), ("category", "direct fire"), *((side, "none") for side in SIDES)]
# Data set -> its files at toy size, settings that say so, and how the content of a file is packed.
FILES = {
    "abalone": (
        {"abalone.data": b"M,0.455,0.365,0,0.514,0.2245,0.101,0.15,15\nF,1,2,3,4,5,6,7,9\nI,1,1,1,1,1,1,1,3\n"},
        {"train_rows": 2, "test_rows": 1},
        bytes,
    ),
    "adult": (
        {
            "adult.data": f"{adult_row('<=50K')}\n{adult_row('>50K')}\n\n".encode(),
            "adult.test": f"|1x3 Cross validator\n{adult_row('>50K.')}\n\n".encode(),
        },
        {"train_rows": 2, "test_rows": 1},
        bytes,
    ),
    "afghanistan": (
        {
            "afghanistan_events_reduced.csv": table(
                AFGHAN,
                "2004-01-01,RC EAST,Enemy Action,Direct Fire,0,1,,,0,0,2,0,0",
                '2009-12-31,RC SOUTH,"Non-Combat Event",Accident,0,0,0,0,0,0,0,0,0',
            )
        },
        {},
        bytes,
    ),
    "afghanistan as released": ({"afg.csv": AFGHAN_RELEASE}, {}, bytes),
    "afghanistan as counts": (
        {
            "afghanistan_counts.csv": table(
                ["region", "month", "field", "level", "events"],
                *(f"RC EAST,2004-01,{field},{level},3" for field, level in COUNTED),
            )
        },
        {},
        bytes,
    ),
    "census_1980": (
        {
            "angev80_recode_run1_line525.csv.xz": table(
                CENSUS.split(","), "20,30,12,FALSE,2,TRUE,1,15000", "21,31,11,TRUE,3,0,0,NA", "22,32,10,0,2,1,1,9.5"
            )
        },
        {"rows": 2},
        lzma.compress,
    ),
    "ipums_us": (
        {"ipums_us.csv": table(IPUMS, "40,1,0,1,12,0,1,40,5,1,4,2,2,50000", "30,0,1,0,16,0,1,35,3,0,1,0,,20000")},
        {},
        bytes,
    ),
    "iraq_sigact": (
        {
            "esoc_iraq_sigacts_governorate_month.csv": table(
                IRAQ, "Anbar,2004-02,62,22,5,1,34,0", "Baghdad,2004-03,111,36,5,0,69,1"
            )
        },
        {},
        bytes,
    ),
    "mnist": (
        {
            "train-images-idx3-ubyte.gz": idx(np.arange(4 * 784).reshape(4, 28, 28) % 256),
            "train-labels-idx1-ubyte.gz": idx(np.array([3, 1, 8, 3])),
        },
        {"images": 4, "train_rows": 2, "test_rows": 1},
        gzip.compress,
    ),
}  # fmt: skip
SHARED_LOADERS = {"afghanistan_dense"}
PIECES = st.one_of(
    st.binary(max_size=4),
    st.sampled_from(
        [b",", b"\n", b"\r", b'"', b"'", b"\x00", b"\xff", b"\xef\xbb\xbf", b"nan", b"-1", b"inf", b"1e999", b"9" * 30,
         b"_", b"NA", b", ", b"\xd9\xa9", b";", b"\t", b" ", b"#", b"9" * 5000, b"x" * 140_000]
    ),
)  # fmt: skip
# Where, in shares of the length; what is put in; how many bytes are taken out. The last kind truncates.
EDITS = st.one_of(
    st.tuples(st.floats(0, 1), PIECES, st.integers(0, 3)), st.tuples(st.floats(0, 1), st.just(b""), st.just(10**9))
)


def edited(content: bytes, edits) -> bytes:
    for share, piece, taken in edits:
        place = int(share * len(content))
        content = content[:place] + piece + content[place + taken :]
    return content


def test_every_loader_of_files_is_tried():
    read = {name for name in catalogue.names(ROOT / "conf") if catalogue.load(name, ROOT / "conf").files}
    assert read == {name.split()[0] for name in FILES} | SHARED_LOADERS


@pytest.mark.parametrize("name", FILES)
@fuzz(80)
@given(edits=st.lists(EDITS, min_size=1, max_size=3), which=st.integers(0, 1), packed=st.booleans())
def test_a_damaged_data_file_is_refused_by_name_or_read_whole(tmp_path, name, edits, which, packed):
    """An edit of the content or, where that is packed, of the archive; sums are not compared here."""
    contents, toy_settings, pack = FILES[name]
    dataset = catalogue.load(name.split()[0], ROOT / "conf")
    dataset = dataclasses.replace(dataset, settings={**dataset.settings, **toy_settings})
    victim = sorted(contents)[which % len(contents)]
    paths = {}
    for file, content in contents.items():
        damaged = file == victim
        whole = pack(edited(content, edits) if damaged and not packed else content)
        paths[file] = tmp_path / file
        paths[file].write_bytes(edited(whole, edits) if damaged and packed else whole)
    try:
        with no_hang():
            arrays = dataset.loader().parse(paths, dataset)
    except ValueError as error:
        assert re.search("|".join(map(re.escape, map(str, paths.values()))), str(error)), str(error)
        return
    truth = _toy_arrays(tmp_path, name, dataset)
    assert {key: array.dtype for key, array in arrays.items()} == {key: array.dtype for key, array in truth.items()}
    lengths = {len(array) for array in arrays.values()}
    assert len(lengths) == 1
    if toy_settings:
        assert lengths == {len(array) for array in truth.values()}
    for key, array in arrays.items():
        assert np.isfinite(array).all(), key
        assert array.shape[1:] == truth[key].shape[1:]
        assert key != "counts" or (array >= 0).all()


def _toy_arrays(folder: Path, name: str, dataset) -> dict[str, np.ndarray]:
    contents, _, pack = FILES[name]
    paths = {}
    for file, content in contents.items():
        paths[file] = folder / f"whole-{file}"
        paths[file].write_bytes(pack(content))
    return dataset.loader().parse(paths, dataset)


@fuzz(100)
@given(edits=st.lists(EDITS, min_size=1, max_size=2))
def test_damaged_prepared_data_are_refused_or_unchanged(tmp_path, edits):
    contents, toy_settings, _ = FILES["abalone"]
    raw = tmp_path / "raw" / "abalone" / "abalone.data"
    raw.parent.mkdir(parents=True, exist_ok=True)
    raw.write_bytes(contents["abalone.data"])
    dataset = catalogue.load("abalone", ROOT / "conf")
    size, sha256 = checksum(raw)
    file = dataclasses.replace(dataset.files[0], bytes=size, sha256=sha256)
    dataset = dataclasses.replace(dataset, files=(file,), settings={**dataset.settings, **toy_settings})
    path = prepared.prepare(dataset, raw=tmp_path / "raw", prepared=tmp_path)
    truth = prepared.read("abalone", dataset, prepared=tmp_path)
    path.write_bytes(edited(path.read_bytes(), edits))
    try:
        arrays = prepared.read("abalone", dataset, prepared=tmp_path)
    except ValueError as error:
        assert str(path) in str(error)
        return
    assert {key: array.tobytes() for key, array in arrays.items()} == {key: a.tobytes() for key, a in truth.items()}


@fuzz(100)
@given(edits=st.lists(EDITS, min_size=1, max_size=2))
def test_a_damaged_result_is_refused_or_unchanged(tmp_path, edits):
    path = tmp_path / "cell.npz"
    record = {"study": "toy/curve", "digest": "0123456789", "config": {"level": 1.0}, "source": {}}
    store.write(path, {"mean": np.arange(12.0).reshape(3, 4), "flag": np.array(True)}, record)
    truth = store.read(path)
    path.write_bytes(edited(path.read_bytes(), edits))
    try:
        result = store.read(path, "0123456789")
    except store.CorruptCell as error:
        assert str(path) in str(error)
        return
    assert result.record == truth.record
    assert {key: a.tobytes() for key, a in result.arrays.items()} == {k: a.tobytes() for k, a in truth.arrays.items()}
