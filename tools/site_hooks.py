"""Hooks of mkdocs that remove from the built site what no page needs."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.exceptions import PluginError

# Largest number of bytes of the site, which is passed on as a folder.
LARGEST = 12_000_000


def on_post_page(output: str, **_) -> str:
    """Return a page without its indentation, a sixth of its size; `<pre>` and `<textarea>` keep theirs."""
    parts = re.split(r"(<pre.*?</pre>|<textarea.*?</textarea>)", output, flags=re.DOTALL)
    return "".join(part if place % 2 else re.sub(r"\n\s+", "\n", part) for place, part in enumerate(parts))


def on_post_build(config, **_) -> None:
    """Remove maps of compressed scripts and stemmers of languages other than English; refuse too large a site."""
    site = Path(config["site_dir"])
    assets = site / "assets"
    for path in [*assets.rglob("*.map"), *assets.glob("javascripts/lunr/min/*"), *assets.glob("javascripts/lunr/*.js")]:
        path.unlink()
    if (size := sum(path.stat().st_size for path in site.rglob("*") if path.is_file())) > LARGEST:
        raise PluginError(f"the site has {size:,} bytes, {LARGEST:,} at most")
