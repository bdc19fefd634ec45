"""The style of all figures: widths, fonts, labels of axes, and one colour, marker and name for each method."""

import contextlib
import gc
import io
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# Width of a page's text, and half of this width, in inches. Figures are printed at the size at which they are drawn.
WIDTH = 5.5
NARROW = 3.2
# Half the width of a 95 % interval, in standard errors.
NORMAL_95 = 1.96
FONTS = ["DejaVu Sans", "Verdana", "sans-serif"]

RC: Any = {
    "figure.constrained_layout.use": True,
    "font.family": "sans-serif",
    "font.sans-serif": FONTS,
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.titlepad": 4,
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.5,
    **{
        f"{axis}tick.{part}": value
        for axis in "xy"
        for part, value in (("major.size", 3), ("major.width", 0.8), ("minor.size", 0))
    },
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "errorbar.capsize": 1.5,
    "pdf.fonttype": 42,
    # Letters are stored as text, not as curves: files are half as large, and a changed word changes one line.
    "svg.fonttype": "none",
    "svg.hashsalt": "privpost",
    "savefig.facecolor": "white",
    # Letters have the same width at every resolution.
    "text.hinting": "none",
}


class Look(NamedTuple):
    """How a method is drawn: colour, marker, line style and its name in legends."""

    color: str
    marker: str
    linestyle: str
    label: str

    def line(self) -> dict:
        """Return the look as keyword arguments of a line plot."""
        size = 5.5 if self.marker == "*" else RC["lines.markersize"]
        return {**self._asdict(), "markersize": size}


# Methods in the order of legends. The colours of methods that share a table differ in lightness, and under the three
# types of colour blindness. The contrast of each colour with white is at least 3.
LOOKS = {
    "non_private": Look("#000000", "o", "--", "Non-private"),
    "laplace": Look("#004881", "s", "-", "Laplace"),
    "gaussian": Look("#07a875", "D", "-.", "Gaussian"),
    "geometric": Look("#4c0099", "8", "-", "Geometric"),
    "discrete_gaussian": Look("#2b1a00", "d", "-.", "Discrete Gaussian"),
    "fourier": Look("#00381f", "h", "-", "Fourier"),
    "ops": Look("#dc6309", "^", "-", "OPS"),
    "ops_ball": Look("#b8860b", "o", "-", "OPS, smallest ball"),
    "direct": Look("#686a6b", "h", ":", "Direct"),
    "diffused": Look("#0b81bd", "v", "-", "Diffused"),
    "ops_renyi": Look("#680045", "<", "--", "OPS, Rényi charge"),
    "concentrated": Look("#a21e49", "P", "-", "Concentrated"),
    "output_noise": Look("#195300", "d", "-.", "Mode and noise"),
    "langevin": Look("#120d7b", ">", ":", "Langevin, every step paid"),
    "private_gibbs": Look("#207e3b", "*", "--", "Gibbs, every update paid"),
    "sampler_record": Look("#a64d85", "v", "-", "Sampler, ε per record"),
    "sampler_attribute": Look("#cc5971", "<", "--", "Sampler, ε per attribute"),
    "map": Look("#7a5700", ">", "-.", "MAP"),
    "naive": Look("#814700", "X", "-", "Noise-naive"),
    "consistent": Look("#6d5d00", "8", "-", "Laplace, consistent counts"),
    "gibbs": Look("#00076f", "D", "-", "Noise-aware, Gibbs"),
    "exact": Look("#8b9b41", "p", ":", "Noise-aware, exact"),
    "quadrature": Look("#cd304c", "P", "-", "Quadrature"),
    "gibbs_independent": Look("#563cf9", "d", "-", "Gibbs, paper's segments"),
    "gibbs_normal": Look("#3a6ea5", "^", "--", "Gibbs, normal proposals"),
    "data_augmentation": Look("#6411b7", "o", "-", "Data augmentation"),
    "simulation": Look("#751334", "s", "-", "Weighted simulation"),
    "abc_smc": Look("#0a0212", "H", "-", "ABC-SMC"),
    "records": Look("#250f04", "<", "-", "Record chain"),
    "table": Look("#fb02b9", ">", "-", "Table chain"),
    "noise_calibrated": Look("#d700dd", "^", "-", "Normal, noise added"),
    "napsu_mq": Look("#013177", "*", "--", "NAPSU-MQ"),
    "prior": Look("#460953", "v", "-", "Prior"),
    "randomised_response": Look("#8e78ff", "X", "-", "Randomised response"),
}
# Colours for methods that are not in LOOKS; the method's name decides which colour it gets.
RESERVE = ("#A05A2C", "#6B4C9A", "#2F6F73", "#4D4D4D")
RESERVE_MARKERS = ("*", "8", "H", "p")
# Colours of curves that do not stand for a method.
COLORS = ("#0072B2", "#D55E00", "#117733", "#AA4499", "#8A6414", "#332288")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "d", "p", "h")
LINES = ("-", "--", ":", "-.")
GREY = "#555555"
# Notes that several figures have.
ABSENT = "A method that a panel lacks was not run for it"
TRUNCATION = "M: OPS keeps the probability of each of K levels above 1/(M K)"
BAND = "#dddddd"

# Labels of axes, for all studies.
AXES = {
    "epsilon": "Privacy cost ε (pure DP)",
    "epsilon_delta": "Privacy cost ε of (ε, δ)-DP",
    "log_epsilon": "Privacy cost ln ε, (λ, ε)-RDP",
    "order": "Order λ of the Rényi divergence",
    "n": "Records n",
}
SYMBOLS = {
    "epsilon": "ε", "epsilon_delta": "ε", "log_epsilon": "ln ε", "order": "λ", "delta": "δ", "n": "n", "p": "p",
    "a0": "a₀", "noise_variance": "σ²", "truncation": "M", "n_states": "K", "concentration": "c", "coefficient": "r",
}  # fmt: skip


def look(method: str) -> Look:
    """Return the look of a method. A method that is not in `LOOKS` gets a reserve colour."""
    if method in LOOKS:
        return LOOKS[method]
    place = sum(method.encode()) % len(RESERVE)
    return Look(RESERVE[place], RESERVE_MARKERS[place], "-", method.replace("_", " ").capitalize())


@contextlib.contextmanager
def context() -> Iterator[None]:
    """Return a context for drawing in the project's style, without a screen and without the user's matplotlibrc."""
    import matplotlib
    import seaborn as sns

    # The dates inside PDF and SVG files are fixed, so that the same tables give the same bytes.
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    matplotlib.use("Agg")
    # The parts of an open figure refer to each other, so frequent garbage collection would find nothing.
    thresholds = gc.get_threshold()
    gc.set_threshold(100_000, *thresholds[1:])
    try:
        with matplotlib.rc_context({**matplotlib.rcParamsDefault, "backend": "Agg"}), warnings.catch_warnings():
            # seaborn copies tables in a way that pandas no longer needs.
            warnings.filterwarnings("ignore", "The copy keyword is deprecated", module=r"seaborn\.")
            sns.set_theme("paper", "ticks", rc=RC)
            yield
    finally:
        gc.set_threshold(*thresholds)


def power(value: float, wide: bool = False) -> str:
    """Return a number as text, with a raised power of ten if the number is very large or small."""
    if not np.isfinite(value):
        return f"{value:g}".replace("inf", "∞").replace("-", "−")
    if not value or (1e-2 if wide else 1e-4) <= abs(value) < (1e3 if wide else 2e4):
        return f"{value:g}".replace("-", "−")
    mantissa, exponent = f"{value:e}".split("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    factor = f"{float(mantissa):g}".replace("-", "−")
    return f"10{raised}" if factor == "1" else f"{factor}·10{raised}"


def decades(axes, smallest: float, values, which: str = "y") -> None:
    """Make an axis linear between ±`smallest` and logarithmic beyond, with ticks at powers of ten."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]

    def ticks(largest: float) -> list[float]:
        last = np.floor(np.log10(max(largest, smallest)) + 1e-9)
        return [10.0**exponent for exponent in range(round(np.log10(smallest)), int(last) + 1)]

    negative = ticks(-values.min()) if (values < -smallest / 2).any() else []
    places = [*(-tick for tick in reversed(negative)), 0.0, *ticks(values.max())]
    getattr(axes, f"set_{which}scale")("symlog", linthresh=smallest)
    getattr(axes, f"set_{which}ticks")(places, labels=[power(place) for place in places])
    if not negative:
        getattr(axes, f"set_{which}lim")(-smallest / 2, 1.6 * max(values.max(), smallest))
    axes.minorticks_off()


def _label_decades(axis) -> None:
    """Label a logarithmic axis with plain text instead of Matplotlib's formulas."""
    from matplotlib import ticker

    if axis.get_scale() != "log" or not axis.isDefault_majloc:
        return
    low, high = sorted(axis.get_view_interval())
    ratio, wide = high / low, low < 5e-5 or high > 2e4
    # Powers of ten have two ticks between them if there is room.
    steps = (1, 2, 5) if 3 * np.log10(ratio) < min(axis.get_tick_space(), 6) else (1,)
    axis.set_major_locator(ticker.MaxNLocator(4) if ratio < 4 else ticker.LogLocator(subs=steps))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: power(value, wide)))
    axis.set_minor_locator(ticker.NullLocator())


def _no_layout() -> contextlib.AbstractContextManager[None]:
    """Return a context without layout engine, in which Matplotlib draws each figure only once."""
    import matplotlib

    return matplotlib.rc_context({"figure.constrained_layout.use": False})


def lay_out(figure) -> None:
    """Place a figure's axes once for all formats and resolutions."""
    from matplotlib.transforms import Bbox

    if (engine := figure.get_layout_engine()) is None:
        return
    for axes in figure.axes:
        _label_decades(axes.xaxis)
        _label_decades(axes.yaxis)
    # SVG and PDF have this resolution.
    figure.dpi = 72
    engine.execute(figure)
    with _no_layout():
        figure.set_layout_engine(None)
    # The last digits of the layout's solver differ between runs, and would change the files.
    for axes in figure.axes:
        axes.set_position(Bbox(axes.get_position(original=True).get_points().round(6)))


def save(figure, path: Path, dpi: int = 300) -> None:
    """Write a figure without date or version, in the format of the path's ending. `dpi` is for PNG."""
    kind = path.suffix[1:]
    metadata = {
        "png": {"Software": None},
        "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
        "svg": {"Date": None, "Creator": None},
    }[kind]
    # The file is made in memory, since on a full disk the error of Matplotlib's PDF writer hides the cause.
    content = io.BytesIO()
    # Compared with zlib's best level, files are a tenth larger and take nine tenths of the time to write.
    quick = {"pil_kwargs": {"compress_level": 3}} if kind == "png" else {}
    lay_out(figure)
    with _no_layout(), _letters_alone() if kind == "pdf" else contextlib.nullcontext():
        figure.savefig(content, format=kind, metadata=metadata, dpi=dpi if kind == "png" else 72, **quick)
    path.write_bytes(_fixed_widths(content.getvalue()) if kind == "svg" else content.getvalue())


# The parts ("tables") of a font that a PDF needs (ISO 32000-2, 9.9). The PDF itself says where each letter stands.
_EMBEDDED = {"GlyphOrder", "cvt ", "fpgm", "glyf", "head", "hhea", "hmtx", "loca", "maxp", "prep"}


def _letters_alone() -> contextlib.AbstractContextManager:
    """Return a context in which PDF files embed only the font tables that a PDF needs."""
    # No viewer reads the other tables, and cutting their letters would take most of the time.
    from unittest import mock

    from fontTools import subset

    load_font = subset.load_font

    def load(*arguments, **keywords):
        font = load_font(*arguments, **keywords)
        for table in set(font.keys()) - _EMBEDDED:
            del font[table]
        return font

    return mock.patch.object(subset, "load_font", load)


_TEXT = re.compile(r'<text style="([^"]*?font-size: ([\d.]+)px;[^"]*)"([^>]*)>([^<]+)</text>')


def _fixed_widths(svg: bytes) -> bytes:
    """Return an SVG whose texts have, in every font, the widths that the layout assumed."""
    import html

    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    def fixed(match: re.Match) -> str:
        weight = "bold" if "font-weight: 700" in match[1] else "normal"
        font = FontProperties(family=FONTS[0], size=float(match[2]), weight=weight)
        width = text_to_path.get_text_width_height_descent(html.unescape(match[4]), font, ismath=False)[0]
        place = re.sub(r' transform="rotate\(-0 [^"]*"', "", match[3])
        fitted = f'{place} textLength="{width:.1f}" lengthAdjust="spacingAndGlyphs"'
        return f'<text style="{match[1]}"{fitted}>{match[4]}</text>'

    return _TEXT.sub(fixed, svg.decode()).encode()


def close(figure) -> None:
    """Close a figure, which frees its memory."""
    import matplotlib.pyplot as plt

    plt.close(figure)
