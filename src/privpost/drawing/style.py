"""One look for every figure: sizes, fonts, and one colour, marker and label per method id."""

import contextlib
import gc
import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

# Widths in inches of one and of two columns of a paper.
ONE_COLUMN = 3.4
TWO_COLUMNS = 7.0

RC = {
    "figure.dpi": 200,
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "errorbar.capsize": 1.5,
    "pdf.fonttype": 42,
    # Text as text: half the size, and a change of a word is a change of a line.
    "svg.fonttype": "none",
    "svg.hashsalt": "privpost",
    "savefig.facecolor": "white",
}


class Look(NamedTuple):
    """How a method is drawn: colour, marker, line style and the label that a legend shows."""

    color: str
    marker: str
    linestyle: str
    label: str

    def line(self) -> dict:
        """Return the keyword arguments of a line plot."""
        return {"color": self.color, "marker": self.marker, "linestyle": self.linestyle, "label": self.label}


# Colours after Okabe and Ito, and Tol's muted set: distinguishable with every common colour-vision deficiency;
# markers and line styles repeat the distinction for print in grey.
LOOKS = {
    "non_private": Look("#000000", "o", "--", "True posterior"),
    "laplace": Look("#0072B2", "s", "-", "Laplace"),
    "gaussian": Look("#009E73", "D", "-.", "Gaussian"),
    "ops": Look("#D55E00", "^", "-", "OPS"),
    "ops_renyi": Look("#882255", "<", "--", "OPS, charged by theorem 17"),
    "output_noise": Look("#009E73", "D", "-.", "Mode and noise"),
    "langevin": Look("#332288", "s", ":", "Langevin, every step paid"),
    "private_gibbs": Look("#117733", "p", "--", "Gibbs, every update paid"),
    "diffused": Look("#56B4E9", "v", "-", "Diffused"),
    "concentrated": Look("#CC79A7", "P", "-", "Concentrated"),
    "direct": Look("#666666", "h", ":", "Direct posterior"),
    "gibbs": Look("#332288", "s", "-", "Gibbs (noise-aware)"),
    "naive": Look("#E69F00", "X", "-", "Naive"),
    "exact": Look("#999933", "d", ":", "Exact oracle"),
    "fourier": Look("#44AA99", "D", "-", "Fourier"),
    "sampler_record": Look("#AA4499", "v", "-", "Sampler (record level)"),
    "sampler_attribute": Look("#882255", "<", "--", "Sampler (attribute level)"),
    "map": Look("#B8860B", ">", "-.", "MAP"),
}
# For methods that the project does not know yet, taken in alphabetical order of their ids.
RESERVE = ("#88CCEE", "#6B4C9A", "#A05A2C", "#4D4D4D")
RESERVE_MARKERS = ("*", "8", "H", "+")


def look(method: str) -> Look:
    """Return how a method is drawn; an unknown one gets a reserve colour that its name determines."""
    if method in LOOKS:
        return LOOKS[method]
    place = sum(method.encode()) % len(RESERVE)
    return Look(RESERVE[place], RESERVE_MARKERS[place], "-", method.replace("_", " ").capitalize())


@contextlib.contextmanager
def context() -> Iterator[None]:
    """Draw without a screen and in the project's style, whatever the user's own matplotlibrc says."""
    import matplotlib

    # Fixed dates inside PDF and SVG files: the same tables give the same bytes.
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    matplotlib.use("Agg")
    # A figure's parts refer to each other until it is closed: looking for garbage among them is in vain.
    thresholds = gc.get_threshold()
    gc.set_threshold(100_000, *thresholds[1:])
    try:
        with matplotlib.rc_context({**matplotlib.rcParamsDefault, "backend": "Agg", **RC}):
            yield
    finally:
        gc.set_threshold(*thresholds)


def _lay_out(figure) -> None:
    """Place the axes once, to a millionth of the figure's size, for all formats.

    The layout's solver differs in last digits from run to run, and an SVG names its clip paths by all of them.
    """
    import matplotlib
    from matplotlib.transforms import Bbox

    if figure.get_layout_engine() is None:
        return
    figure.get_layout_engine().execute(figure)
    # No engine at all: for any engine, even an empty one, Matplotlib draws once more before it writes.
    with matplotlib.rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)
    for axes in figure.axes:
        axes.set_position(Bbox(axes.get_position(original=True).get_points().round(6)))


def save(figure, path: Path, dpi: int = 300) -> None:
    """Write a figure in the format of the path's ending, with no date or version inside; `dpi` is that of a PNG."""
    metadata = {
        ".png": {"Software": None},
        ".pdf": {"CreationDate": None, "Producer": None, "Creator": None},
        ".svg": {"Date": None, "Creator": None},
    }[path.suffix]
    _lay_out(figure)
    # Drawn in memory: on a full disk Matplotlib's PDF writer fails with an error that hides the cause.
    content = io.BytesIO()
    # A tenth larger than at zlib's best, and written in nine tenths of the time.
    quick = {"pil_kwargs": {"compress_level": 3}} if path.suffix == ".png" else {}
    figure.savefig(content, format=path.suffix[1:], metadata=metadata, dpi=dpi, **quick)
    path.write_bytes(content.getvalue())


def save_small(figure, path: Path, colors: Iterable[str], dpi: int = 124) -> None:
    """Write a figure as a PNG with a palette of greys and the given colours, a quarter of the size of a full one."""
    from matplotlib.colors import to_rgb
    from PIL import Image

    greys = [(level / 15,) * 3 for level in range(16)]
    # Each colour also half way to white, for the edges of marks.
    shades = [tuple(1 - share * (1 - c) for c in to_rgb(color)) for color in colors for share in (1, 0.66, 0.33)]
    palette = Image.new("P", (1, 1))
    palette.putpalette([round(255 * c) for shade in (*greys, *shades) for c in shade])
    _lay_out(figure)
    content = io.BytesIO()
    figure.savefig(content, format="png", metadata={"Software": None}, dpi=dpi)
    image = Image.open(content).convert("RGB").quantize(palette=palette, dither=Image.Dither.NONE)
    image.save(path, format="png", optimize=True)


def close(figure) -> None:
    """Release a figure's memory."""
    import matplotlib.pyplot as plt

    plt.close(figure)


def error_band(axes, x, mean, sem, *, method: str, alpha: float = 0.2, **keywords) -> None:
    """Draw a method's mean as a line with a band of one standard error either side."""
    style = {**look(method).line(), **keywords}
    axes.plot(x, mean, **style)
    axes.fill_between(x, mean - sem, mean + sem, color=style["color"], alpha=alpha, linewidth=0)
