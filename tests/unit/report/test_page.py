"""The report's page: escaped, closed to content from outside, with figures and tables compressed."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path

import looked_at
import numpy as np
import pandas as pd
import pytest

from privpost.commands import cli
from privpost.drawing import figures as marked
from privpost.drawing import style
from privpost.experiments.zhang2016.statements import STATEMENTS
from privpost.lab import grid
from privpost.report import figures as overall
from privpost.report import page, scorecard
from privpost.report.captions import Caption
from privpost.report.scorecard import Scored

CAPTION = Caption("A <title>.", "Bars are one standard error.")


def unpacked(text: str) -> bytes:
    return gzip.decompress(base64.b64decode(text))


def test_figures_and_tables_are_kept_once_and_compressed(tmp_path):
    packed = page.Packed()
    assert packed.figure(tmp_path / "fig.svg", CAPTION)["name"] is None
    assert packed.table(tmp_path / "t.csv")["rows"] is None
    (tmp_path / "fig.svg").write_text("<svg/>")
    pd.DataFrame({"x": [0.123456789] * 600}).to_csv(tmp_path / "t.csv", index=False)
    figure, table = packed.figure(tmp_path / "fig.svg", CAPTION), packed.table(tmp_path / "t.csv")
    assert (table["rows"], table["shown"]) == (600, page.ROWS)
    assert unpacked(packed.texts[figure["name"]]) == b"<svg/>"
    assert json.loads(unpacked(packed.texts[table["name"]]))["rows"][0] == ["0.123457"]


def test_backticks_are_code_and_all_else_is_escaped():
    assert page.inline("of `a<b` & c") == "of <code>a&lt;b</code> &amp; c"


def test_the_page_escapes_what_tables_and_claims_say(claim, checkout):
    """Markup in an id, a statement or evidence reaches the page as text only."""
    mark = "</script><!--<script><b>&"
    card = scorecard.table([Scored("a/b", [claim(f"G1{mark}", evidence={mark: mark}, verdict="not testable")])])
    card = card.assign(paper=mark, study=f"{mark}/claims", statement=mark)
    fixed = {"css": "", "js": "", "policy": "", "cells": 1, "counts": {}, "data": [], "times": [], "papers": []}
    missing = {"path": mark, "name": None}
    text = page.environment().get_template("report.html.in").render(
        **fixed, severity=[], failing={}, claims=list(card.itertuples()), packed={}, neighbours=mark,
        overview=dict.fromkeys(marked.functions(overall), missing), versions={mark: mark}, moment=page._moment(),
        ours=scorecard.counts(card), before=mark,
    )  # fmt: skip
    assert mark not in text and "<!--" not in text
    assert text.count("&lt;/script&gt;&lt;!--&lt;script&gt;&lt;b&gt;&amp;") >= 5
    # The paper's own data or ours: the column tells what stands in for data, and no more.
    assert "<td>not a stand-in<br>" in text


def test_the_policy_allows_the_pages_own_script_and_style_only(checkout):
    css, js = ((page.TEMPLATES / f"report.{ending}").read_text() for ending in ("css", "js"))
    template = (page.TEMPLATES / "report.html.in").read_text()
    policy = page.policy(css, js)
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    for tag, text in (("style", css), ("script", js)):
        # What stands between the tags of the rendered page is what is hashed.
        between = re.search(rf"<{tag}>(.*?)</{tag}>", template, re.DOTALL)[1]
        content = re.sub(r"{{ \w+ }}", lambda _, text=text: text, between)
        assert base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() in policy
    # Handlers in attributes would be refused, and styles too.
    assert re.findall(r"\s(?:on\w+|style)=", template) == []


def test_the_report_says_how_far_it_is(checkout, monkeypatch):
    shown = []
    monkeypatch.setattr(page.Progress, "update", lambda self, done, total: shown.append((done, total)))
    page.render(grid.load_studies(["foulds2016/adversary", "geumlek2017/theorem15"]), Path("."))
    assert shown == [(1, 2), (2, 2)]


def test_the_report_of_what_is_published_draws_nothing_anew(checkout, monkeypatch, capsys):
    monkeypatch.setattr(overall, "draw", lambda *given: pytest.fail("drawn"))
    monkeypatch.setattr(page, "write", lambda studies, home, path: home / "figures")
    assert cli.main(["report"]) == 0
    assert capsys.readouterr().out == "figures\n"


@pytest.mark.parametrize(
    ("table", "panel", "finding", "lie"),
    [
        (
            "war_logs_differences",
            0,
            "once noise is modelled",
            lambda t: t.assign(joint_mean=t.joint_mean * (t.second != "laplace")),
        ),
        (
            "war_logs_differences",
            0,
            "once noise is modelled",
            lambda t: t.assign(joint_mean=t.joint_mean + 9 * (t.second == "gibbs")),
        ),
        ("bounds", 1, "do not", lambda t: t.assign(holds=True)),
        ("ecdf", 2, "If the noise is modelled", lambda t: t.assign(ecdf=t.ecdf.where(t.method != "gibbs", t.ecdf / 2))),
        ("ecdf", 2, "If the noise is modelled", lambda t: t.assign(ecdf=t.ecdf.where(t.method != "naive", t.u))),
    ],
)
def test_the_readmes_pictures_say_what_their_tables_have(checkout, table, panel, finding, lie):
    """A falsified table changes the title of its panel."""
    frames, said = overall.tables(Path(), ("war_logs_differences", "bounds", "ecdf")), []
    for given in (frames, frames | {table: lie(frames[table])}):
        with style.context():
            canvas = overall.hero(**given)
            said.append(canvas.axes[panel].get_title(loc="left"))
            style.close(canvas)
    assert finding in said[0] and finding not in said[1]


def test_the_title_on_calibration_stands_above_the_published_tables(checkout):
    """Nothing of the figure is cut off."""
    function = marked.functions(overall)["calibration"]
    with style.context():
        canvas = marked.draw(function, overall.tables(Path(), marked.parameters(function)))
        assert looked_at.faults(canvas) == [] and "right prior" in canvas.get_suptitle()
        style.close(canvas)


@pytest.mark.parametrize(
    ("table", "wrong"),
    [
        ("calibration", {"method": "gibbs", "model": "binomial"}),
        ("families", {"method": "gibbs"}),
        ("event_calibration", {"method": "gibbs"}),
        ("naive_bayes_calibration", {"method": "exact", "concentration": 1}),
        ("regression_calibration", {"method": "gibbs"}),
        # Of another prior, that it fails; of naive posteriors, that they do at the smallest ε.
        ("naive_bayes_calibration", {"method": "exact", "concentration": [0.5, 3]}),
        ("calibration", {"method": "naive"}),
    ],
)
def test_the_title_on_calibration_is_about_all_models(checkout, table, wrong):
    """KS distances of some rows that are made large, or small where they are large, take the title away."""
    function = marked.functions(overall)["calibration"]
    frames = overall.tables(Path(), marked.parameters(function))
    rows = frames[table]
    chosen = np.logical_and.reduce([rows[name].isin(np.atleast_1d(value)) for name, value in wrong.items()])
    factor = 0.1 if rows.ks[chosen].median() > 0.1 else 4
    lie = rows.assign(ks=rows.ks.where(~chosen, rows.ks * factor))
    assert chosen.any() and looked_at.title(function, frames | {table: lie}) == ""
    assert "right prior" in looked_at.title(function, frames)


def test_the_readmes_bounds_are_all_that_the_paper_states(checkout):
    """A statement of the table is drawn, as printed or mended; one reading of a constant is another's alternative."""
    drawn = {*STATEMENTS, *(mended for _, mended in STATEMENTS.values())}
    table = overall.tables(Path(), ["bounds"])["bounds"]
    readings = {"corollary 4 with the probability", "corollary 4 with the log-density"}
    assert set(table.statement) - drawn == {"theorem_1_difference_sum", *readings}
    assert drawn - set(table.statement) == {""}


def test_a_figure_of_a_table_without_rows_is_not_drawn(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results/scorecard.csv").write_text(",".join(scorecard.COLUMNS) + "\n")
    assert overall.draw(tmp_path) == []
