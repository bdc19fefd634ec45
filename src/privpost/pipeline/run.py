"""Computing cells through Hydra: one point, or a multirun sweep, into the same store that Snakemake uses."""

from __future__ import annotations

import re
import sys
import tempfile

from privpost.pipeline import cells, grid, store
from privpost.pipeline.project import CONF
from privpost.pipeline.schema import SettingError

# Overrides that choose what runs and where, rather than a setting of the study.
_NOT_SETTINGS = {"study", *grid.RUN}


def _key(override: str) -> str:
    return override.split("=", 1)[0]


def main(argv: list[str]) -> int:
    """Run `privpost [-m] study=... [key=value ...]`; returns the exit status."""
    overrides = [word for word in argv if "=" in word and not word.startswith("-")]
    name = next((word.split("=", 1)[1] for word in overrides if _key(word) == "study"), None)
    if name is None:
        raise SettingError(f"study is missing: say study=<paper>/<study>, one of {', '.join(grid.study_names())}.")
    for word in overrides:
        if word[0] in "+~":
            raise SettingError(f"{word!r}: a study's settings can be changed (key=value), not added or removed.")
    sys.argv = ["privpost", *argv]
    if not any(_key(word) == "expect" for word in overrides):
        sys.argv[1:] = _checked(name, argv, overrides)
    failures: list[str] = []
    _run_hydra(failures)
    return 1 if failures else 0


def _checked(name: str, argv: list[str], overrides: list[str]) -> list[str]:
    """Return the arguments with pinned within axes spelt out, after checking every key."""
    scale = next((word.split("=", 1)[1] for word in overrides if _key(word) == "scale"), "paper")
    study = grid.load_study(name, scale)
    settings = {_key(word) for word in overrides} - _NOT_SETTINGS
    for key in settings:
        bare = key.removeprefix("within.")
        if bare not in study.schema and bare not in grid.SIZES and not key.startswith("hydra"):
            raise study.schema.unknown(key, study.file, others=[*grid.SIZES])
    words = []
    for word in argv:
        key, _, value = word.partition("=")
        if key in study.config["within"]:
            values = re.split(r",(?![^\[]*\])", value)
            lists = ",".join(v if v.startswith("[") else f"[{v}]" for v in values)
            words.append(f"within.{key}={lists}")
        else:
            words.append(word)

    return words


def _run_hydra(failures: list[str]) -> None:
    import hydra
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import DictConfig, OmegaConf

    def task(config: DictConfig) -> None:
        words = HydraConfig.get().overrides.task
        try:
            cell_job(HydraConfig.get().runtime.choices.study, OmegaConf.to_container(config, resolve=True), words)
        except (SettingError, store.CorruptCell) as error:
            failures.append(str(error))
            print(f"privpost: {error}", file=sys.stderr)

    with tempfile.TemporaryDirectory(prefix="privpost-") as scratch:
        # Hydra writes multirun.yaml into the sweep's folder, whatever it is told.
        sys.argv.append(f"hydra.sweep.dir={scratch}")
        hydra.main(version_base="1.3", config_path=str(CONF.resolve()), config_name="config")(task)()


def cell_job(name: str, config: dict, words: list[str]) -> None:
    """Compute the cell that a composed configuration describes, unless the store holds it already.

    `words` are the overrides as they were given; they win over a study's `smoke:` section. Raises SettingError when
    the digest is not the one that `expect` names.
    """
    study = grid.as_study(name, config)
    overrides = {}
    for word in words:
        key = _key(word)
        if key in _NOT_SETTINGS:
            continue
        bare = key.removeprefix("within.")
        overrides[bare] = config["within"][bare] if key.startswith("within.") else config[key]
    cell = grid.make_cell(study, overrides)
    expected = config["expect"]
    if expected is not None and str(expected) != cell.digest:
        raise SettingError(
            f"expect is {expected}, but these settings have the digest {cell.digest}: the configuration changed "
            "since the run was planned. Nothing was computed; start the run again."
        )
    if cell.path.exists():
        try:
            store.read(cell.path, cell.digest)
            print(f"{cell.path} is in the store already")
            return
        except store.CorruptCell as error:
            print(f"privpost: {error}; set aside as {store.set_aside(cell.path).name}", file=sys.stderr)
    print(cells.compute(study, cell))
