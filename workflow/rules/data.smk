for dataset in PLAN.datasets:

    rule:
        name:
            f"fetch_{dataset}"
        output:
            [update(path) for path in PLAN.raw_files(dataset)],
        log:
            f"logs/data/fetch_{dataset}.log",
        localrule: True
        conda:
            ENVIRONMENT
        params:
            dataset=dataset,
        message:
            f"Fetch and verify the raw data of {dataset}"
        shell:
            '"${{PRIVPOST_PYTHON:-python}}" -m privpost fetch {params.dataset:q} > {log:q} 2>&1'

    rule:
        name:
            f"prepare_{dataset}"
        input:
            raw=PLAN.raw_files(dataset),
            stamp=PLAN.data_stamp(dataset),
        output:
            f"{PREPARED_FOLDER}/{dataset}.npz",
        log:
            f"logs/data/prepare_{dataset}.log",
        localrule: True
        conda:
            ENVIRONMENT
        params:
            dataset=dataset,
        message:
            f"Parse the raw data of {dataset}"
        shell:
            '"${{PRIVPOST_PYTHON:-python}}" -m privpost prepare {params.dataset:q} > {log:q} 2>&1'
