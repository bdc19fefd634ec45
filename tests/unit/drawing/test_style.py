"""One style for every method: everybody can tell methods apart, and text needs no particular font."""

from __future__ import annotations

import io
import itertools
import re
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from privpost import discovery
from privpost.drawing import calibration, facets, figures, style
from privpost.lab.schema import SettingError

# Matrices of Machado, Oliveira and Fernandes (2009) for full colour blindness, on linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]])
# A difference of 2 is just seen side by side; lines and markers are small and apart.
SEEN, SEEN_IN_GREY, CONTRAST = 12.0, 4.5, 3.0


def linear(color: str) -> np.ndarray:
    rgb = np.array(to_rgb(color))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """Return CIELAB of linear RGB."""
    xyz = XYZ @ np.clip(rgb, 0, 1) / XYZ.sum(axis=1)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def apart(one: str, other: str) -> dict[str, float]:
    """Return how far two colours are apart, for each kind of vision and in grey (lightness)."""
    found = {
        kind: float(np.linalg.norm(lab(matrix @ linear(one)) - lab(matrix @ linear(other))))
        for kind, matrix in VISION.items()
    }
    return {**found, "grey": abs(float(lab(linear(one))[0] - lab(linear(other))[0]))}


def confused(looks: dict[str, style.Look], pairs) -> list[tuple]:
    """Return the pairs of methods that somebody cannot tell apart by colour."""
    least = {**dict.fromkeys(VISION, SEEN), "grey": SEEN_IN_GREY}
    return [
        (one, other, kind, round(distance, 1))
        for one, other in pairs
        for kind, distance in apart(looks[one].color, looks[other].color).items()
        if distance < least[kind]
    ]


def together() -> set[tuple[str, str]]:
    """Return the pairs of methods that some published table has; the audit's and the benchmark's are never lines."""
    found = set()
    for path in sorted(Path("results").glob("*/*/*.csv")):
        if path.parent.name not in ("audit", "rivals") and "method" in pd.read_csv(path, nrows=0):
            methods = pd.read_csv(path, usecols=["method"]).method.dropna().unique()
            found |= set(itertools.combinations(sorted(methods), 2))
    return found


def test_methods_of_one_table_are_told_apart_by_everybody_and_in_grey():
    pairs = together()
    assert len(pairs) > 60
    assert confused(style.LOOKS, pairs) == []
    assert [pair for pair in pairs if len({style.LOOKS[name].marker for name in pair}) < 2] == []


def test_a_colour_that_some_confuse_is_found():
    looks = {**style.LOOKS, "ops": style.LOOKS["ops"]._replace(color=style.LOOKS["laplace"].color)}
    assert ("laplace", "ops") in {pair[:2] for pair in confused(looks, [("laplace", "ops")])}
    # Red and green of one lightness: apart for most, one for two kinds of colour blindness.
    looks = {"a": style.Look("#c04040", "o", "-", "a"), "b": style.Look("#5c7c10", "o", "-", "b")}
    assert {kind for _, _, kind, _ in confused(looks, [("a", "b")])} >= {"grey"}


def test_no_two_methods_have_one_colour_and_marker_and_all_are_seen_on_white():
    pairs = [
        pair for pair in itertools.combinations(style.LOOKS, 2) if len({style.LOOKS[name].marker for name in pair}) < 2
    ]
    assert confused(style.LOOKS, pairs) == []
    assert len({look.label for look in style.LOOKS.values()}) == len(style.LOOKS)
    for name, look in style.LOOKS.items():
        contrast = 1.05 / (float(XYZ[1] @ linear(look.color)) + 0.05)
        assert contrast >= CONTRAST, (name, contrast)


def test_every_method_of_the_library_has_a_look():
    methods = {kind.method for group in discovery.mechanisms().values() for kind in group}
    assert methods <= set(style.LOOKS)
    unknown = style.look("toy_noise")
    assert unknown.color in style.RESERVE and unknown.label == "Toy noise"


def drawn(tmp_path: Path, ending: str) -> Path:
    import matplotlib.pyplot as plt

    with style.context():
        figure, axes = plt.subplots(figsize=(3, 2))
        axes.plot([1, 1e6], [1e-6, 1], label="a label with ÷, ε and <")
        axes.set(xscale="log", yscale="log", xlabel="Records n", title="√((1+T)/2)")
        facets.finish(figure, "")
        style.save(figure, path := tmp_path / f"drawn.{ending}")
        style.close(figure)
    return path


def test_texts_of_an_svg_keep_their_width_in_any_font(tmp_path):
    svg = drawn(tmp_path, "svg").read_text()
    texts = re.findall(r"<text ([^>]*)>([^<]*)</text>", svg)
    assert {"10⁻⁶", "10⁴", "Records n", "√((1+T)/2)", "a label with ÷, ε and &lt;"} <= {words for _, words in texts}
    # No formula: its letters would be placed one by one, in fonts that readers lack.
    assert "<tspan" not in svg
    for attributes, words in texts:
        assert "sans-serif" in attributes and "Verdana" in attributes, words
        width = float(re.search(r'textLength="([\d.]+)"', attributes)[1])
        assert 0.2 < width / (len(words.replace("&lt;", "<")) * 8) < 1.0, (words, width)


def test_a_figure_is_laid_out_once_for_all_formats(tmp_path, monkeypatch):
    import matplotlib.pyplot as plt
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    laid_out, execute = [], ConstrainedLayoutEngine.execute
    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lambda *given: laid_out.append(execute(*given)))
    with style.context():
        figure, _ = plt.subplots()
        for ending in ("svg", "pdf", "png"):
            style.save(figure, tmp_path / f"drawn.{ending}", dpi=72)
        style.close(figure)
    assert len(laid_out) == 1


def test_a_pdf_has_of_its_fonts_only_what_viewers_read(tmp_path):
    from fontTools.ttLib import TTFont

    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", drawn(tmp_path, "pdf").read_bytes(), re.DOTALL)
    fonts = [text for text in map(zlib.decompress, streams) if text.startswith(b"\0\1\0\0")]
    # Letters of the first 256, and those beyond.
    assert len(fonts) == 2
    for font in fonts:
        assert {"glyf", "hmtx"} <= set(TTFont(io.BytesIO(font)).keys()) <= style._EMBEDDED


def test_one_layout_leaves_nothing_cut_off_at_any_resolution(tmp_path):
    import matplotlib.pyplot as plt
    from PIL import Image

    for dpi in (60, 150, 300):
        with style.context():
            figure, axes = plt.subplots(figsize=(3, 2))
            axes.set_ylabel("A label that is as long as the figure is high")
            axes.set_yticks([0, 1], ["the first of two long labels", "the second"])
            style.save(figure, path := tmp_path / f"{dpi}.png", dpi=dpi)
            style.close(figure)
        image = np.asarray(Image.open(path).convert("L"))
        edges = [image[:, 0], image[:, -1], image[0], image[-1]]
        assert all((edge > 250).all() for edge in edges), dpi


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.001, "0.001"), (1e-5, "10⁻⁵"), (2e-6, "2·10⁻⁶"), (10000, "10000"), (1e6, "10⁶"), (-0.5, "−0.5"), (0, "0"),
     (-np.inf, "−∞"), (np.nan, "nan")],
)  # fmt: skip
def test_numbers_of_ticks(value, words):
    assert style.power(value) == words


def test_a_figure_of_a_table_that_is_not_there_is_named():
    @figures.figure("errors")
    def errors(nois): ...

    with pytest.raises(SettingError, match="figure errors: there is no table 'nois'; there are: noise"):
        figures.draw(errors, {"noise": None})


@pytest.mark.parametrize("columns", ["mean", ["n", "mean"]])
def test_a_column_that_a_table_lacks_is_one_line_that_says_what_to_run(columns):
    @figures.figure("errors")
    def errors(noise):
        return noise[columns]

    @figures.figure("slip")
    def slip(noise):
        return {}["mean"]

    message = r"figure errors: noise has no column or row named .*mean.*make reproduce STUDY="
    with pytest.raises(SettingError, match=message):
        figures.draw(errors, {"noise": pd.DataFrame({"n": [1]})})
    # A mistake of the figure's own stays what it is.
    with pytest.raises(KeyError, match="mean"):
        figures.draw(slip, {"noise": pd.DataFrame({"n": [1]})})


@pytest.mark.parametrize(
    ("ks", "naive", "counts"),
    [
        (0.02, 0.2, ("0 of 2", "1 of 1")),
        # Beyond the limit of one test, and within that of two.
        (0.0309, 0.2, ("1 of 2", "1 of 1")),
        (0.2, 0.2, ()),
        (0.02, 0.02, ()),
    ],
)
def test_a_title_on_calibration_counts_the_points_beyond_the_limit(ks, naive, counts):
    rows = [("gibbs", 0.1, ks), ("gibbs", 1, 0.02), ("naive", 0.1, naive)]
    table = pd.DataFrame(rows, columns=["method", "epsilon", "ks"]).assign(n_trials=2000)
    words = "Beyond the 95 % limit lie {} points of noise-aware posteriors, {} naive ones".format(*counts or ("", ""))
    words = words if counts else ""
    assert calibration.answer(calibration.over_limit(table)) == words


def test_ks_distances_are_over_the_limit_of_their_table_or_of_their_trials():
    rows = calibration.over_limit(pd.DataFrame({"ks": [0.05, 0.2], "n_trials": 1000, "ks_limit": [np.nan, 0.1]}))
    assert rows.over.tolist() == pytest.approx([0.05 / 0.04295, 2], rel=1e-3)
