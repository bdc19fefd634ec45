"""The dispatcher of the command line: help, commands by name, and runs of cells."""

import argparse
import os
import pkgutil
import re
import sys
from pathlib import Path
from typing import Any

from privpost import __version__, moved

USAGE = """\
privpost: studies of Bayesian inference under differential privacy, rebuilt

  privpost study=<paper>/<study> [key=value ...]    compute one point: tables and a figure
  privpost -m study=<paper>/<study> key=a,b ...     compute a sweep; without keys the study's whole grid
{common}

  Keys are the study's settings, trials and seed; study=<paper>/<study> --help lists them. scale=smoke is toy size;
  shard=3/40 computes a part; fresh=true computes again what is in the store; -n only says what would be computed.
  This is a Hydra application: hydra/launcher=joblib uses all cores, --hydra-help lists Hydra's options, and
  eval "$(privpost -sc install=bash)" completes studies, settings and values.

Groups (study=..., dataset=..., scale=...)
{groups}

Single steps, and what the project publishes
{steps}

`privpost COMMAND --help` explains a command. make reproduce and make test set everything up first."""


def option(*names: str, **how: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return an option of a command as a pair: the option's names, and the keywords that argparse takes."""
    return names, how


def positive(name: str, text: str) -> int:
    """Return the whole number above 0 in an option's text. Raises SettingError for any other text."""
    from privpost.lab.schema import SettingError

    if not text.isdecimal() or int(text) < 1:
        raise SettingError(f"{name} is {text!r}, but must be a whole number of at least 1.")
    return int(text)


STUDY = option("study", help="<paper>/<study>")
STUDIES = option("study", nargs="*", help="<paper>/<study>, or a paper; all studies when none is named")
SCALE = option("--scale", default="paper", help="paper (default) or smoke")
BUILT = option("--built", action="store_true", help="use the tables under build/ instead of the published ones")
DRY_RUN = option("-n", "--dry-run", action="store_true", help="only list what would be removed")
EVIDENCE = option("--evidence", action="store_true", help="print the numbers behind each verdict too")
COUNTS = option("--counts", metavar="FILE", help="write the counts of war logs as CSV too, without any event")
CORES = option("--cores", default="2", help="number of processes; default 2")
FRESH = option("--fresh", action="store_true", help="delete the stored cells of these studies first")
PRINTED = option("--printed", action="store_true", help="write PDF and PNG too")
SWEEPS = option("--sweeps", action="store_true", help="remove the results of runs and sweeps too")
CLAIMS = option(
    "study",
    nargs="*",
    help="<paper>/<study>, a paper, claims as the scorecard has them, such as Z2, or the folder of a sweep, to score "
    "claims on its tables",
)
# Commands by purpose: name → function (imported when called), what it does, and its options.
COMMON: dict[str, tuple] = {
    "reproduce": (
        "reproduce:main", "rebuild everything, or some studies, and compare with what is published",
        STUDIES, SCALE, CORES, FRESH,
    ),
    "list": ("listing:studies", "the studies, with their number of cells and computing time", SCALE),
    "status": ("status:status", "what is computed, and what is missing or outdated", STUDIES, SCALE),
    "claims": (
        "steps:claims", "the verdicts on claims; --evidence adds the numbers behind them",
        CLAIMS, SCALE, BUILT, EVIDENCE,
    ),
    "draw": ("steps:draw", "draw figures from the published tables", STUDIES, SCALE, BUILT, PRINTED),
    "release": (
        "release:main", "privatise a CSV file of your own, with a privacy statement",
        option("specification", type=Path, help="YAML file: what is public; docs/release.md explains it"),
        option("--data", type=Path, help="CSV file with a header; default: the specification's data"),
        option("--output", type=Path, help="new JSON file; default: standard output"),
        option("--draws", type=Path, metavar="FILE", help="new .csv or .nc (ArviZ) file for the posterior's draws"),
        option("-n", "--dry-run", action="store_true", help="print the privacy terms; read no data and draw no noise"),
        option("--again", type=Path, metavar="RELEASE", help="draw an earlier release's posterior again, at no cost"),
    ),
    "ledger": (
        "ledger:main", "check a ledger of releases, and the statements that it paid for",
        option("verb", choices=["check"], help="report what does not fit; change nothing"),
        option("ledger", type=Path, help="the ledger that the specifications name"),
        option("statement", type=Path, nargs="*", help="released files that it paid for"),
        option("--delta", help="δ at which to state the cost of all releases together; default: the budget's"),
    ),
    "bench": (
        "bench:main", "measure a method of inference of your own against exact posteriors",
        option("verb", choices=["list", "score", "export"], help="list what there is, score methods, or write tasks"),
        option(
            "source", nargs="*", help="to score: names of methods, files with infer(task, releases, rng, budget), or "
            "folders that were exported, with draws/<method>/<task>/<release>.csv; to export: a folder",
        ),
        option("--tasks", default="", help="tasks to take, or files of your own, with commas between; default: all"),
        option("--epsilon", type=float, help="ε of the releases (default 1)"),
        option("--releases", help="fixed releases of each task (default 5)"),
        option("--output", type=Path, metavar="FILE", help="write the scores as CSV too, with version and machine"),
    ),
}  # fmt: skip
STEPS: dict[str, tuple] = {
    "mechanisms": ("listing:mechanisms", "the mechanisms, with their guarantees"),
    "prune": ("status:prune", "remove results that no grid names any more", STUDIES, SCALE, SWEEPS, DRY_RUN),
    "fetch": (
        "data:fetch", "unpack and verify data sets; what is not here is downloaded",
        option("dataset", nargs="+", help="names of data sets"),
    ),
    "prepare": ("data:prepare", "parse a fetched data set into data/prepared", option("dataset"), COUNTS),
    "build": ("steps:build", "compute a study's missing cells, then its tables", STUDY, SCALE),
    "scorecard": ("steps:scorecard", "score all claims", SCALE, BUILT),
    "documents": ("steps:documents", "render README.md and docs/*.md", SCALE, BUILT),
    "report": ("steps:report", "write the report: one HTML file with everything inside", SCALE, BUILT),
    "publish": ("publish:main", "copy what was built into results/, figures/ and the documents", STUDIES),
}  # fmt: skip
COMMANDS = {**COMMON, **STEPS}
# Commands about a user's own files or the package alone; they run in the current folder, not at the project's root.
ANYWHERE = {"release", "ledger", "mechanisms", "bench"}
# Commands about published files, which an installed package does not have.
OF_A_CHECKOUT = {"reproduce", "scorecard", "documents", "report", "publish"}


def call(name: str, argv: list[str]) -> int:
    """Parse the options that a command declares, run the command, and return its exit status."""
    place, summary, *options = COMMANDS[name]
    text = f"{summary[0].upper()}{summary[1:]}."
    parser = argparse.ArgumentParser(prog=f"privpost {name}", description=text, allow_abbrev=False)
    for names, how in options:
        parser.add_argument(*names, **how)
    given, unknown = parser.parse_known_intermixed_args(argv)
    for word in (*unknown, *(given.study if STUDIES in options or CLAIMS in options else ())):
        if re.match(r"\w+=", word) and not Path(word).exists():
            raise _no_setting(name, word, given)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    status = pkgutil.resolve_name(f"privpost.commands.{place}")(given)
    # Flushing here detects a closed pipe. At its end, Python would warn of the pipe.
    sys.stdout.flush()
    return status


def _no_setting(name: str, word: str, given: argparse.Namespace) -> Exception:
    """Return the error for a word `key=value` after a command."""
    from privpost.lab.schema import SettingError

    key, _, value = word.partition("=")
    cure = "settings belong to a run: privpost study=<paper>/<study> key=value"
    if key in given:
        cure = {"scale": f"write --scale {value}", "study": f"write {value} alone"}.get(key, cure)
    elif name == "release":
        cure = f"{given.specification} holds all settings of the release: edit that file"
    return SettingError(f"{name} takes no key=value words, such as {word!r}: {cure}.")


def _help(argv: list[str]) -> int:
    """Print the commands, the configuration groups and a named study's settings, and return the exit status."""
    from privpost.commands import words
    from privpost.lab import project

    parts = {
        part: "\n".join(f"  privpost {name:<40} {summary}" for name, (_, summary, *_) in commands.items())
        for part, commands in (("common", COMMON), ("steps", STEPS))
    }
    try:
        project.enter()
        parts["groups"] = words.groups()
    except FileNotFoundError:
        parts["groups"] = "  none here: no conf/config.yaml"
    print(USAGE.format(**parts))
    for name in [word.removeprefix("study=") for word in argv if word.startswith("study=")]:
        print("\n".join(["", *words.of_study(name)]))
    return 0


def main(argv: list[str]) -> int:
    """Run one command, and return its exit status. A mistake in the arguments or settings gives 2."""
    if argv == ["--version"]:
        print(f"privpost {__version__}")
        return 0
    from privpost.datasets.catalogue import CatalogueError
    from privpost.lab import project
    from privpost.lab.schema import SettingError, suggest

    try:
        if not argv or argv[0] == "help" or (argv[0] not in COMMANDS and {"-h", "--help"} & set(argv)):
            return _help(argv)
        if argv[0] in COMMANDS:
            if argv[0] not in ANYWHERE:
                project.enter(checkout=argv[0] in OF_A_CHECKOUT)
            return call(argv[0], argv[1:])
        if argv[0].startswith(("-", "~")) or "=" in argv[0]:
            project.enter()
            from privpost.commands import run, words

            return 0 if "query=bash" in argv and words.complete(COMMANDS) else run.main(argv)
        hint = moved.told("command", argv[0]) or suggest(argv[0], COMMANDS)
        raise SettingError(
            f"there is no command {argv[0]!r}.{hint} Commands: {', '.join(COMMANDS)}; a run starts with "
            "study=<paper>/<study>."
        )
    except (SettingError, CatalogueError, FileNotFoundError) as error:
        print(f"privpost: {error}", file=sys.stderr)
        return 2
    except SyntaxError as error:
        # The error is in a module of a study, a loader or a mechanism.
        file = os.path.relpath(error.filename) if error.filename else "a module"
        print(f"privpost: {file}, line {error.lineno}: {error.msg}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("privpost: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (head, a pager) has closed the pipe. Discard the output that Python flushes when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, MemoryError) as error:
        print(f"privpost: {project.plainly(error)}", file=sys.stderr)
        return 1
