# Every study of the four papers, from raw data to figures: `snakemake` here finds the rules in workflow/.
include: "workflow/Snakefile"


# What an included file says first is no default target.
rule everything:
    default_target: True
    input:
        rules.all.input,
