for study in STUDIES.values():

    rule:
        name:
            f"draw_{study.identifier}"
        input:
            tables=[str(study.table_path(table)) for table in study.tables],
            stamp=PLAN.figure_stamp(study.name),
        output:
            [update(str(path)) for path in study.figure_paths()],
        log:
            f"logs/{ROOT}/{study.name}/draw.log",
        conda:
            ENVIRONMENT
        params:
            study=study.name,
            where=WHERE,
        message:
            f"Draw the figures of {study.name}"
        shell:
            "${{PRIVPOST_PYTHON:-python}} -m privpost draw {params.study} {params.where} > {log} 2>&1"
