"""Hydra's side of the grid: studies' composed configurations, kept for the next start, and the grammar of overrides."""

import hashlib
import importlib.metadata
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from privpost import configurations
from privpost.lab import kept
from privpost.lab.project import NAME, STATE
from privpost.lab.schema import SettingError


def study_names() -> list[str]:
    """Return the names of all studies, `<paper>/<study>`, in alphabetical order.

    Raises SettingError for a file whose name no rule of Snakemake can have.
    """
    files = sorted((configurations.folder() / "study").glob("*/*.yaml"))
    for file in files:
        if not (NAME.fullmatch(file.stem) and NAME.fullmatch(file.parent.name)):
            raise SettingError(f"{str(file)!r}: a study and its paper must be called by letters, digits, _, - and .")
    return [f"{file.parent.name}/{file.stem}" for file in files]


def compose(names: Iterable[str], scale: str, overrides: Iterable[str] = ()) -> dict[str, dict]:
    """Return the composed configuration of each study as a plain dict.

    A Hydra compose takes some 50 ms a study, at every start of Snakemake, so the plain configurations are kept under
    .snakemake. They are looked up by all that they depend on: the content of conf/, Hydra's version, the arguments.
    """
    names, overrides = list(names), list(overrides)
    folder = STATE / "composed" / conf_digest()
    files = {name: f"{kept.digest(name, scale, *overrides)}.json" for name in names}
    found = {name: kept.read(folder / file) for name, file in files.items()}
    composed = _compose_with_hydra([name for name in names if found[name] is None], scale, overrides)
    if composed:
        kept.write(folder, {files[name]: config for name, config in composed.items()})
    return found | composed


def _compose_with_hydra(names: list[str], scale: str, overrides: list[str]) -> dict[str, dict]:
    if not names:
        return {}
    import yaml
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    configs = {}
    # A cell's job is itself run by Hydra, which allows one composition at a time.
    outer = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(configurations.folder().resolve())):
            for name in names:
                words = [f"study={name}", f"scale={scale}", *overrides]
                try:
                    configs[name] = OmegaConf.to_container(hydra_compose("config", overrides=words), resolve=True)
                except (HydraException, OmegaConfBaseException, yaml.YAMLError, UnicodeDecodeError) as error:
                    # Hydra's own messages go on for many lines; what is wrong stands in the first ones.
                    reason = " ".join(line.strip() for line in str(error).splitlines()[:4])
                    raise SettingError(
                        f"{configurations.folder()}/study/{name}.yaml cannot be read with {' '.join(words)}: {reason}"
                    ) from error
    finally:
        GlobalHydra.instance().hydra = outer
    return configs


def conf_digest() -> str:
    """Return a digest of every configuration file's path and content, and of the versions that compose them."""
    versions = (f"{package} {importlib.metadata.version(package)}" for package in ("hydra-core", "omegaconf"))
    return kept.digest(*versions, files_digest(configurations.folder(), "*.yaml"))


def files_digest(folder: Path, pattern: str) -> str:
    """Return a digest of the path and content of every file below a folder whose name fits a pattern."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob(pattern)):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder)} {len(content)};".encode() + content)
    return digest.hexdigest()


def rooted(root: str | os.PathLike[str] | None) -> list[str]:
    """Return the overrides that put results and figures into a folder; none for None, the scale's own folder."""
    return [] if root is None else [f"root={hydra_value(root)}", f"figure_root={hydra_value(f'{root}/figures')}"]


# What Hydra would read as a number, a truth value or null; anything else in these characters is a plain word.
_NO_WORD = re.compile(r"[+-]?(\d[\d_]*)?\.?(\d[\d_]*)?(e[+-]?\d+)?|[+-]?(inf|nan)|true|false|null", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")


def hydra_value(value: Any) -> str:
    """Return a value in the grammar of Hydra's command-line overrides."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return "[" + ",".join(hydra_value(item) for item in value) + "]"
    text = str(value)
    if _PLAIN.fullmatch(text) and not _NO_WORD.fullmatch(text):
        return text
    # In quotes Hydra takes a backslash literally, except before a quote.
    return "'" + re.sub(r"(\\*)('|$)", lambda found: found[1] * 2 + "\\'" * bool(found[2]), text) + "'"
