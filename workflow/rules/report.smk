# What covers all studies: a rebuild of some of them makes none of it.
if WHOLE:

    rule score:
        input:
            TABLES,
            reasons=plan.templates("reasons/*.md"),
        output:
            SCORES,
        log:
            f"logs/{SCALE}/scorecard.log",
        localrule: True
        conda:
            ENVIRONMENT
        params:
            scale=SCALE,
            code=plan.score_code_of(STUDIES),
        message:
            "Score all claims"
        shell:
            '"${{PRIVPOST_PYTHON:-python}}" -m privpost scorecard --built --scale {params.scale} > {log:q} 2>&1'

    rule write_report:
        input:
            SCORES,
            FIGURES,
            templates=plan.templates("report.*"),
        output:
            REPORT,
        log:
            f"logs/{SCALE}/report.log",
        localrule: True
        conda:
            ENVIRONMENT
        params:
            scale=SCALE,
            code=plan.report_code(),
        message:
            "Write the report"
        shell:
            '"${{PRIVPOST_PYTHON:-python}}" -m privpost report --built --scale {params.scale} > {log:q} 2>&1'


if DOCUMENTS:

    rule documents:
        input:
            SCORES,
            FIGURES,
            templates=plan.templates("**/*.*"),
        output:
            DOCUMENTS,
        log:
            f"logs/{SCALE}/documents.log",
        localrule: True
        conda:
            ENVIRONMENT
        params:
            scale=SCALE,
            code=plan.report_code(),
        message:
            "Render README.md and the documents"
        shell:
            '"${{PRIVPOST_PYTHON:-python}}" -m privpost documents --built --scale {params.scale} > {log:q} 2>&1'
