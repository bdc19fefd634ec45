"""Noise scales of the Laplace and the Fourier mechanism as a graph gets denser (Zhang et al. 2016, remark 1)."""

from privpost.drawing import multiples, style


def draw(tables):
    """Return the figure: Fourier's noise scale over Laplace's against the largest in-degree, exact values.

    One point per graph: on an orthonormal coefficient (the paper's comparison) and, as a range over the nodes, on a
    published count. Lines join the banded graphs of ten nodes.
    """
    table = tables["noise_scale"]
    figure, ((axes,),) = multiples.grid(1, 1, 2.9, width=style.ONE_COLUMN)
    looks = {"fourier_coefficient": ("#44AA99", "D", "per coefficient"), "fourier_cell": ("#0072B2", "o", "per count")}
    for column, (color, marker, label) in looks.items():
        ratio = table.assign(ratio=table[column] / table.laplace, share=table.largest_in_degree / table.nodes)
        of_graph = {"low": ("ratio", "min"), "high": ("ratio", "max"), "share": ("share", "first")}
        ends = ratio.groupby("graph").agg(**of_graph, nodes=("nodes", "first"))
        ten, other = ends[ends.nodes == 10].sort_values("share"), ends[ends.nodes != 10]
        axes.plot(ten.share, ten.low, color=color, marker=marker, label=f"{label}, 10 nodes")
        if column == "fourier_cell":
            worst = "per count, up to the worst node"
            axes.fill_between(ten.share, ten.low, ten.high, color=color, alpha=0.15, linewidth=0, label=worst)
        look = {"linestyle": "", "marker": marker, "fillstyle": "none", "label": f"{label}, other"}
        axes.plot(other.share, other.low, color=color, **look)
    axes.axhline(1, color="#444444", linewidth=0.8)
    axes.axvline(0.5, color="#444444", linewidth=0.8, linestyle=":")
    axes.set(yscale="log", xlabel="Largest in-degree / |I|", ylabel="Noise scale, Fourier / Laplace")
    axes.set_title("Below 1: Fourier adds less noise (exact)")
    figure.legend(loc="outside lower center", ncols=2, fontsize=6)
    return figure
