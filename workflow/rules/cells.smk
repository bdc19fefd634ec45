rule cell:
    input:
        # Only what a missing cell reads: a stored one is guarded by its digest, whatever happens to the data.
        lambda wildcards: PLAN.prepared(f"{ROOT}/cells/{wildcards.paper}/{wildcards.study}/{wildcards.cell}.npz"),
    output:
        f"{ROOT}/cells/{{paper}}/{{study}}/{{cell}}.npz",
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
        '"${{PRIVPOST_PYTHON:-python}}" -m privpost {params.arguments} > {log} 2>&1'
