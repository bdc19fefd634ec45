# What covers all studies: a rebuild of some of them makes none of it.
if WHOLE:

    rule score:
        input:
            tables=TABLES,
            stamp=PLAN.report_stamp("score", "privpost.report.build", "privpost.report.numbers"),
        output:
            [update(path) for path in SCORES],
        log:
            f"logs/{ROOT}/scorecard.log",
        localrule: True
        conda:
            ENVIRONMENT
        params:
            where=WHERE,
        message:
            "Score all claims"
        shell:
            '"${{PRIVPOST_PYTHON:-python}}" -m privpost scorecard {params.where:q} > {log:q} 2>&1'

    rule draw_overview:
        input:
            scores=SCORES,
            stamp=PLAN.report_stamp("overview", *(f"privpost.report.figures.{name}" for name in overview.FIGURES)),
        output:
            [update(path) for path in OVERVIEW],
        log:
            f"logs/{ROOT}/overview.log",
        localrule: True
        conda:
            ENVIRONMENT
        params:
            where=WHERE,
        message:
            "Draw the scorecard and the run times"
        shell:
            '"${{PRIVPOST_PYTHON:-python}}" -m privpost overview {params.where:q} > {log:q} 2>&1'

    rule write_report:
        input:
            scores=SCORES,
            figures=SHIPPED,
            templates=[str(path) for path in overview.templates()],
            stamp=PLAN.report_stamp("report", "privpost.report.page"),
        output:
            REPORT,
        log:
            f"logs/{ROOT}/report.log",
        localrule: True
        conda:
            ENVIRONMENT
        params:
            where=WHERE,
        message:
            "Write the report {output}"
        shell:
            '"${{PRIVPOST_PYTHON:-python}}" -m privpost report {params.where:q} > {log:q} 2>&1'


if README:

    rule render_readme:
        input:
            scores=SCORES,
            figures=SHIPPED,
            templates=[str(path) for path in documents.sources().values()],
            dictionary="docs/templates/dictionary.yaml",
            tables=TABLES,
            stamp=PLAN.report_stamp("readme", *documents.modules()),
        output:
            [update(path) for path in README],
        log:
            f"logs/{ROOT}/readme.log",
        localrule: True
        conda:
            ENVIRONMENT
        message:
            "Render README.md and the documents"
        shell:
            '"${{PRIVPOST_PYTHON:-python}}" -m privpost readme > {log:q} 2>&1'
