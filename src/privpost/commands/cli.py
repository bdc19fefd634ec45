"""The dispatcher in front of Hydra: help, commands by name, and runs of cells."""

import os
import pkgutil
import sys

from privpost import __version__

USAGE = """\
privpost: studies of Bayesian inference under differential privacy, rebuilt

Rebuild what is shipped, and look at it
  make reproduce                                     everything, or with STUDY=<paper>/<study> one study
{shipped}

Ask something of your own
  privpost study=<paper>/<study> [key=value ...]     compute the study's base point, with some settings changed
  privpost -m study=<paper>/<study>                  compute the study's whole grid
  privpost -m study=<paper>/<study> key=a,b ...      compute a sweep; the other keys stay at their base value
{own}

  A key is a setting, an axis (a within axis is pinned to the values given), trials, block or seed. scale=smoke runs at
  toy size, under build/smoke; hydra/launcher=joblib runs a sweep on all cores; -n only says what would be computed;
  shard=3/40 computes that part of a sweep in one process, as large sweeps and clusters need it. Results land in the
  store that Snakemake uses; a sweep ends with a table and a figure under build/sweeps.

Single steps, as Snakemake's rules call them
{steps}

`privpost COMMAND --help` explains a command; docs/doors.md says which of them, make and Snakemake is for what."""

# Name → its function of the remaining arguments, imported when it is called, and what it does; by purpose.
GROUPS = {
    "shipped": {
        "reproduce": ("commands.rebuild:main", "rebuild everything, or the named studies, with Snakemake"),
        "verify": ("commands.verify:main", "rebuild from an empty store and compare with what is shipped"),
        "status": ("commands.status:status", "what the store holds, and what a rebuild would do about it"),
        "claims": ("commands.steps:claims", "the verdict on every claim that a study tests"),
        "draw": ("commands.steps:draw", "draw a study's figures from its tables"),
    },
    "own": {
        "list": ("commands.listing:studies", "the studies, their titles and sizes"),
        "mechanisms": ("commands.listing:mechanisms", "the mechanisms, with their guarantees"),
        "release": ("release.command:main", "privatise a CSV file: statistics as JSON, with a privacy statement"),
        "prune": ("commands.status:prune", "list and remove results that no grid names any more"),
    },
    "steps": {
        "fetch": ("commands.data:fetch", "download (or copy from a mirror) and verify data sets"),
        "prepare": ("commands.data:prepare", "parse a fetched data set into data/prepared"),
        "tabulate": ("commands.steps:tabulate", "write a study's tables from its cells"),
        "scorecard": ("commands.steps:scorecard", "score all claims, and collect the quoted numbers"),
        "overview": ("commands.steps:overview", "draw the scorecard, the graph of the rebuild and the run times"),
        "readme": ("commands.steps:readme", "render README.md and docs/*.md from templates and numbers"),
        "report": ("commands.steps:report", "write the report: one HTML file with everything inside"),
    },
}
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}
# Commands about a user's own files: they run where they are called, not at the project's root.
ANYWHERE = {"release"}
# Commands about what the project ships, which no installed package has.
OF_A_CHECKOUT = {"reproduce", "verify", "scorecard", "overview", "readme", "report"}


def main(argv: list[str]) -> int:
    """Run one command; returns its exit status (2 for a mistake in the arguments or settings)."""
    if not argv or argv[0] == "help" or (argv[0] not in COMMANDS and {"-h", "--help"} & set(argv)):
        groups = {
            group: "\n".join(f"  privpost {name:<41} {summary}" for name, (_, summary) in commands.items())
            for group, commands in GROUPS.items()
        }
        print(USAGE.format(**groups))
        return 0
    if argv == ["--version"]:
        print(f"privpost {__version__}")
        return 0
    # Not before: help is to be there at once.
    from privpost.lab import project
    from privpost.lab.schema import SettingError, suggest

    try:
        if argv[0] in COMMANDS:
            if argv[0] not in ANYWHERE:
                project.enter(checkout=argv[0] in OF_A_CHECKOUT)
            return pkgutil.resolve_name(f"privpost.{COMMANDS[argv[0]][0]}")(argv[1:])
        if argv[0].startswith("-") or "=" in argv[0]:
            from privpost.commands import run

            project.enter()
            return run.main(argv)
        raise SettingError(
            f"there is no command {argv[0]!r}.{suggest(argv[0], COMMANDS)} Commands: {', '.join(COMMANDS)}; "
            "a run starts with study=<paper>/<study>."
        )
    except (SettingError, FileNotFoundError) as error:
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
