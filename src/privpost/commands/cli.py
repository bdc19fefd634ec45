"""The dispatcher: help, commands by name, and runs of cells."""

import os
import pkgutil
import sys

from privpost import __version__, moved

USAGE = """\
privpost: studies of Bayesian inference under differential privacy, rebuilt

  privpost study=<paper>/<study> [key=value ...]    compute one point: tables and a figure
  privpost -m study=<paper>/<study> key=a,b ...     compute a sweep; without keys the study's whole grid
{common}

  A key is a setting of the study, trials or seed; study=<paper>/<study> --help lists them. scale=smoke is toy size;
  shard=3/40 computes a part; fresh=true computes again what is in the store; -n only says what would be computed.
  This is a Hydra application: hydra/launcher=joblib uses all cores, --hydra-help lists Hydra's options, and
  eval "$(privpost -sc install=bash)" completes commands, studies and settings.

Groups (study=..., dataset=..., scale=...)
{groups}

Single steps, and what the project publishes
{steps}

`privpost COMMAND --help` explains a command. make reproduce and make test set everything up first."""

# Name → its function of the remaining arguments, imported when it is called, and what it does; by purpose.
COMMON = {
    "reproduce": ("commands.reproduce:main", "rebuild everything, or some studies, and compare with what is published"),
    "list": ("commands.listing:studies", "the studies, with their number of cells and computing time"),
    "status": ("commands.status:status", "what is computed, and what is missing or outdated"),
    "claims": ("commands.steps:claims", "the verdicts on claims; --evidence adds the numbers behind them"),
    "draw": ("commands.steps:draw", "draw figures from the published tables"),
    "release": ("commands.release:main", "privatise a CSV file of your own, with a privacy statement"),
    "ledger": ("commands.ledger:main", "check a ledger of releases, and the statements that it paid for"),
    "bench": ("commands.bench:main", "measure a method of inference of your own against exact posteriors"),
}
STEPS = {
    "mechanisms": ("commands.listing:mechanisms", "the mechanisms, with their guarantees"),
    "prune": ("commands.status:prune", "remove results that no grid names any more"),
    "fetch": ("commands.data:fetch", "unpack and verify data sets; what is not here is downloaded"),
    "prepare": ("commands.data:prepare", "parse a fetched data set into data/prepared"),
    "build": ("commands.steps:build", "compute a study's missing cells, then its tables"),
    "scorecard": ("commands.steps:scorecard", "score all claims"),
    "documents": ("commands.steps:documents", "render README.md and docs/*.md"),
    "report": ("commands.steps:report", "write the report: one HTML file with everything inside"),
    "publish": ("commands.publish:main", "copy what was built into results/, figures/ and the documents"),
}
COMMANDS = {**COMMON, **STEPS}
# Commands about a user's own files, or the package alone: they run where they are called, not at the project's root.
ANYWHERE = {"release", "ledger", "mechanisms", "bench"}
# Commands about what the project publishes, which no installed package has.
OF_A_CHECKOUT = {"reproduce", "scorecard", "documents", "report", "publish"}


def _help(argv: list[str]) -> int:
    """Print the commands, the groups and, where one is named, a study's settings; returns the exit status."""
    from privpost.commands import words
    from privpost.lab import project

    parts = {
        part: "\n".join(f"  privpost {name:<40} {summary}" for name, (_, summary) in commands.items())
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
    """Run one command; returns its exit status (2 for a mistake in the arguments or settings)."""
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
            return pkgutil.resolve_name(f"privpost.{COMMANDS[argv[0]][0]}")(argv[1:])
        if argv[0].startswith("-") or "=" in argv[0]:
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
    except KeyboardInterrupt:
        print("privpost: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (head, a pager) has seen enough; what Python flushes at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, MemoryError) as error:
        print(f"privpost: {project.plainly(error)}", file=sys.stderr)
        return 1
