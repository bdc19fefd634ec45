# Before all studies: the longest wait for data.
FIRST = 10**6

for dataset in DATASETS:

    rule:
        name:
            f"fetch_{dataset}"
        output:
            [update(path) for path in plan.raw_files(dataset)],
        log:
            f"logs/data/fetch_{dataset}.log",
        priority: FIRST
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
            raw=plan.raw_files(dataset),
            settings=f"conf/dataset/{dataset}.yaml",
        output:
            f"{PREPARED_FOLDER}/{dataset}.npz",
        log:
            f"logs/data/prepare_{dataset}.log",
        priority: FIRST
        localrule: True
        conda:
            ENVIRONMENT
        params:
            dataset=dataset,
            code=provenance.loader_digest(dataset),
        message:
            f"Parse the raw data of {dataset}"
        shell:
            '"${{PRIVPOST_PYTHON:-python}}" -m privpost prepare {params.dataset:q} > {log:q} 2>&1'
