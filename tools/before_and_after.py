"""Makes a page that shows the figures of version 0.1.0 beside the current figures."""

import base64
import re
import subprocess
import sys
from html import escape
from pathlib import Path

from privpost import moved

RELEASE = "97d464fca97702fc85df04ac334530d91809a536"
PAGE = Path("build/published/before_and_after.html")
STYLE = "td { vertical-align: top; width: 50% } img { width: 100%; border: 1px solid #ddd } th { text-align: left }"


def pairs() -> dict[str, list[str]]:
    """Return, for each current figure, the paths of the old figures that it replaces."""
    found: dict[str, list[str]] = {}
    for (kind, name), now in moved.names().items():
        today = re.search(r"figures/\S+\.svg", now or f"figures/{name}.svg")
        if kind == "figure" and today:
            found.setdefault(today[0], []).append(f"figures/{name}.svg")
    return found


def cell(path: str, svg: bytes) -> str:
    return f'<p><code>{escape(path)}</code></p><img src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}">'


def main(commit: str = RELEASE) -> None:
    known = ["git", "cat-file", "-e", f"{commit}^{{commit}}"]
    if subprocess.run(known, check=False, capture_output=True).returncode:
        sys.exit(f"There is no commit {commit} here, whose figures the page shows: git fetch --unshallow.")
    rows = [f"<tr><th>{moved.VERSION}<th>today"]
    for today, old in pairs().items():
        before = (cell(path, subprocess.check_output(["git", "show", f"{commit}:{path}"])) for path in old)
        rows.append(f"<tr><td>{''.join(before)}<td>{cell(today, Path(today).read_bytes())}")
    text = f"<title>Figures before and after</title><style>{STYLE}</style><table>{''.join(rows)}</table>"
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(f'<!doctype html><html lang="en"><meta charset="utf-8">{text}', encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main(*sys.argv[1:2])
