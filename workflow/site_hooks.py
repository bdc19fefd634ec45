"""What mkdocs does at the end of a build of the site: takes away what no page needs."""

from __future__ import annotations

import re
from pathlib import Path


def on_post_page(output: str, **_) -> str:
    """Return a page without indentation, which is a sixth of it; inside `<pre>` it stays."""
    parts = re.split(r"(<pre.*?</pre>|<textarea.*?</textarea>)", output, flags=re.DOTALL)
    return "".join(part if place % 2 else re.sub(r"\n\s+", "\n", part) for place, part in enumerate(parts))


def on_post_build(config, **_) -> None:
    """Remove maps of compressed scripts and stemmers of languages other than English."""
    assets = Path(config["site_dir"], "assets")
    for path in [*assets.rglob("*.map"), *assets.glob("javascripts/lunr/min/*"), *assets.glob("javascripts/lunr/*.js")]:
        path.unlink()
