# update() and a rename inside the job keep the shipped tables when a job fails.
for study in PLAN.tabulated:

    rule:
        name:
            f"tabulate_{study.identifier}"
        input:
            cells=PLAN.cell_paths(study),
            stamp=PLAN.table_stamp(study),
        output:
            [update(str(study.table_path(table))) for table in study.tables],
            grid=update(str(study.grid_path())),
            ledger=update(str(ledgers.path_of(study))),
        log:
            f"logs/{ROOT}/{study.name}/tabulate.log",
        localrule: True
        conda:
            ENVIRONMENT
        params:
            study=study.name,
            where=WHERE + ["--partial"] * bool(study.left_out),
        message:
            f"Tabulate {study.name}"
        shell:
            '"${{PRIVPOST_PYTHON:-python}}" -m privpost tabulate {params.study:q} {params.where:q} > {log:q} 2>&1'
