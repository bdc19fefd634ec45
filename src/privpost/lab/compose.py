"""Calls Hydra: returns a study's composed configuration, and writes values in the syntax of Hydra's overrides."""

import hashlib
import importlib.metadata
import json
import re
from pathlib import Path
from typing import Any

from privpost import configurations
from privpost.lab import memo
from privpost.lab.project import NAME, built
from privpost.lab.schema import SettingError


def study_names() -> list[str]:
    """Return the names of all studies, `<paper>/<study>`, in alphabetical order.

    Raises SettingError for a file name that Snakemake's rules cannot use.
    """
    files = sorted((configurations.folder() / "study").glob("*/*.yaml"))
    for file in files:
        if not (NAME.fullmatch(file.stem) and NAME.fullmatch(file.parent.name)):
            raise SettingError(f"{str(file)!r}: names of studies and papers may only have letters, digits, _, - and .")
    return [f"{file.parent.name}/{file.stem}" for file in files]


def compose(name: str, scale: str) -> dict[str, Any]:
    """Return a study's composed configuration as a dict. Raises SettingError, naming the file, if Hydra refuses it.

    Hydra takes a tenth of a second, and commands about all studies need every configuration. So the build keeps what
    Hydra composed, with a digest of all configuration files.
    """
    path, state = built(scale) / "configurations" / f"{name}.json", _state()
    if (config := memo.read(path, state)) is not None:
        return config
    config, constant = _composed(name, scale)
    # A configuration that depends on something else than the files, such as the environment, is not kept.
    if constant and json.loads(json.dumps(config)) == config:
        memo.write(path, state, config)
    return config


def _state() -> str:
    """Return a digest of all configuration files, and of what else decides how Hydra composes them."""
    folders = [configurations.folder(), *map(Path, configurations.MORE)]
    files = [path for folder in folders for path in sorted(folder.rglob("*.yaml"))]
    parts = [configurations.PRIMARY, importlib.metadata.version("hydra-core"), *map(str, files)]
    return hashlib.sha256("\0".join(parts).encode() + b"".join(map(_digest, files))).hexdigest()


def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def _composed(name: str, scale: str) -> tuple[dict[str, Any], bool]:
    """Return the configuration that Hydra composes, and whether it is free of interpolations."""
    import yaml
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException, MissingConfigException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    words = [f"study={name}", f"scale={scale}"]
    if configurations.MORE:
        words.append(f"hydra.searchpath={hydra_value([f'file://{folder}' for folder in configurations.MORE])}")
    # A Hydra job may be running, so Hydra's state is saved and restored.
    running, GlobalHydra.instance().hydra = GlobalHydra.instance().hydra, None
    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(configurations.folder().resolve())):
            composed = hydra_compose(configurations.PRIMARY, overrides=words)
            config = OmegaConf.to_container(composed, resolve=True)
            return config, config == OmegaConf.to_container(composed)  # type: ignore[return-value]
    except (HydraException, OmegaConfBaseException, yaml.YAMLError, UnicodeDecodeError) as error:
        # Hydra's messages have many lines; the first ones say what is wrong.
        reason = " ".join(line.strip() for line in str(error).splitlines()[:4])
        primary = isinstance(error, MissingConfigException) and error.missing_cfg_file == configurations.PRIMARY
        file = f"{configurations.PRIMARY if primary else f'study/{name}'}.yaml"
        raise SettingError(f"{configurations.folder()}/{file} cannot be read: {reason}") from error
    finally:
        GlobalHydra.instance().hydra = running


# The first pattern fits texts that Hydra reads as a number, a truth value or null. Other texts that fit the second
# pattern need no quotes.
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
    from hydra.core.override_parser.types import Quote, QuotedString

    return QuotedString(text, Quote.single).with_quotes()
