# update() and a rename inside the job keep the shipped tables when a job fails.
for study in STUDIES.values():

    rule:
        name:
            f"tabulate_{study.name.replace('/', '_')}"
        input:
            cells=PLAN.cell_paths(study.name),
            stamp=PLAN.table_stamp(study.name),
        output:
            [update(str(study.table_path(table))) for table in study.tables],
            grid=update(str(study.grid_path())),
        log:
            f"logs/{ROOT}/{study.name}/tabulate.log",
        conda:
            ENVIRONMENT
        params:
            study=study.name,
        message:
            f"Tabulate {study.name}"
        shell:
            "{PRIVPOST} tabulate {params.study} {WHERE} > {log} 2>&1"
