if BATCH == 1:

    rule cell:
        input:
            # Only what a missing cell reads: a stored one is guarded by its digest, whatever happens to the data.
            lambda wildcards: PLAN.needed(f"{ROOT}/cells/{wildcards.paper}/{wildcards.study}/{wildcards.cell}.npz"),
        output:
            # Not deleted before the job: one that a killed batch left marked as incomplete may be whole.
            update(f"{ROOT}/cells/{{paper}}/{{study}}/{{cell}}.npz"),
        log:
            f"logs/{ROOT}/{{paper}}/{{study}}/{{cell}}.log",
        wildcard_constraints:
            cell=r"[^/]+_[0-9a-f]{10}",
        conda:
            ENVIRONMENT
        params:
            arguments=lambda wildcards, output: PLAN.arguments(output[0]),
        message:
            "Compute {wildcards.paper}/{wildcards.study} {wildcards.cell}"
        shell:
            '"${{PRIVPOST_PYTHON:-python}}" -m privpost {params.arguments} > {log:q} 2>&1'

else:
    # A job for a batch of cells in one process. Their files are updated, since a batch that a cluster killed goes on
    # from the cells that it had stored.
    for batch in PLAN.batches(BATCH):

        rule:
            name:
                f"cells_{batch.name}"
            input:
                PLAN.needed(*batch.paths),
            output:
                [update(path) for path in batch.paths],
            log:
                f"logs/{ROOT}/{batch.study.name}/cells_{batch.number}_of_{batch.count}.log",
            conda:
                ENVIRONMENT
            params:
                arguments=PLAN.batch_arguments(batch),
            message:
                f"Compute {batch.study.name}, cells {batch.number} of {batch.count}"
            shell:
                '"${{PRIVPOST_PYTHON:-python}}" -m privpost {params.arguments} > {log:q} 2>&1'
