# A study is one job: it computes the cells that the store lacks, and then its tables. A long study has shards, jobs that
# each compute a part of its cells before. The code's digest and the settings' file are what makes a study run again;
# cells that are in the store are not computed again.
SETTINGS = ["conf/config.yaml", f"conf/scale/{SCALE}.yaml", *plan.networks()]
LEDGERS = {study.name: str(study.ledger_path) for study in STUDIES}

for study in STUDIES:
    READ = [LEDGERS[name] for name in grid.names_read(study) if name in LEDGERS]
    NEEDS = [study.file, *SETTINGS, *plan.prepared_files(study), *READ]
    SHARDS = [f"{study.cells_folder}/.shard_{i}_of_{study.shards}" for i in range(1, study.shards + 1)]
    if study.shards > 1:
        for number, shard in enumerate(SHARDS, 1):

            rule:
                name:
                    f"compute_{study.identifier}_{number}_of_{study.shards}"
                input:
                    NEEDS,
                output:
                    touch(shard),
                log:
                    f"logs/{SCALE}/{study.name}/shard_{number}_of_{study.shards}.log",
                priority: int(SECONDS.get(study.name, 0)) + 1
                conda:
                    ENVIRONMENT
                params:
                    words=f"study={study.name} scale={SCALE} shard={number}/{study.shards}",
                    code=plan.code_of(study),
                message:
                    f"Compute {study.name}, part {number} of {study.shards}"
                shell:
                    '"${{PRIVPOST_PYTHON:-python}}" -m privpost -m {params.words} > {log:q} 2>&1'

    rule:
        name:
            f"build_{study.identifier}"
        input:
            NEEDS,
            SHARDS if study.shards > 1 else [],
        output:
            plan.table_files(study),
        log:
            f"logs/{SCALE}/{study.name}/build.log",
        priority: int(SECONDS.get(study.name, 0))
        conda:
            ENVIRONMENT
        params:
            study=study.name,
            scale=SCALE,
            code=plan.code_of(study),
        message:
            f"Build {study.name}"
        shell:
            '"${{PRIVPOST_PYTHON:-python}}" -m privpost build {params.study} --scale {params.scale} > {log:q} 2>&1'

    if study.figures:

        rule:
            name:
                f"draw_{study.identifier}"
            input:
                [str(study.table_path(table)) for table in study.tables],
            output:
                report(
                    plan.figure_files(study),
                    caption="../report/figure.rst",
                    category=study.paper,
                    subcategory=study.name.split("/")[1],
                ),
            log:
                f"logs/{SCALE}/{study.name}/draw.log",
            localrule: True
            conda:
                ENVIRONMENT
            params:
                study=study.name,
                scale=SCALE,
                code=plan.figure_code_of(study),
                title=study.text.get("title", study.name),
                claim=study.text.get("claim", ""),
            message:
                f"Draw the figures of {study.name}"
            shell:
                '"${{PRIVPOST_PYTHON:-python}}" -m privpost draw {params.study} --built --scale {params.scale} > {log:q} 2>&1'
