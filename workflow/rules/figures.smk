for study in PLAN.drawn:

    rule:
        name:
            f"draw_{study.identifier}" + "_partial" * bool(study.left_out)
        input:
            tables=[str(study.table_path(table)) for table in study.tables],
            stamp=PLAN.figure_stamp(study),
        output:
            [update(str(path)) for path in study.figure_paths(PRINTED)],
        log:
            f"logs/{study.table_root}/{study.name}/draw.log",
        localrule: True
        conda:
            ENVIRONMENT
        params:
            study=study.name,
            where=WHERE + ["--partial"] * bool(study.left_out) + ["--svg"] * (not PRINTED),
        message:
            f"Draw the figures of {study.name}"
        shell:
            '"${{PRIVPOST_PYTHON:-python}}" -m privpost draw {params.study:q} {params.where:q} > {log:q} 2>&1'
