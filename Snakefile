# Every study of the four papers, from raw data to figures. The rules are in workflow/rules.
#   snakemake            everything, report included       snakemake figures   redraw from the shipped tables
#   snakemake data       fetch and prepare the raw data    snakemake -n        what would be done
#   snakemake scorecard  score all claims                  snakemake report    the report, build/report.html
from snakemake.utils import min_version

min_version("9.27")


include: "workflow/rules/common.smk"


rule all:
    input:
        CELLS,
        TABLES,
        FIGURES,
        PARTIAL,
        SCORES,
        OVERVIEW,
        README,
        REPORT,


rule tables:
    input:
        TABLES,


rule figures:
    input:
        FIGURES,


rule scorecard:
    input:
        SCORES,
        OVERVIEW,
        README,


rule report:
    input:
        REPORT,


rule data:
    input:
        PREPARED,


include: "workflow/rules/data.smk"
include: "workflow/rules/cells.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"
