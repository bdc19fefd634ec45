rule cell:
    input:
        # Prepared data are guarded by the digest, not by their time.
        lambda wildcards: [
            ancient(path)
            for path in PLAN.prepared(f"{ROOT}/cells/{wildcards.paper}/{wildcards.study}/{wildcards.cell}.npz")
        ],
    output:
        ROOT + "/cells/{paper}/{study}/{cell}.npz",
    log:
        "logs/" + ROOT + "/{paper}/{study}/{cell}.log",
    wildcard_constraints:
        cell="[^/]+_[0-9a-f]{10}",
    conda:
        ENVIRONMENT
    params:
        arguments=lambda wildcards, output: PLAN.arguments(output[0]),
    message:
        "Compute {wildcards.paper}/{wildcards.study} {wildcards.cell}"
    shell:
        "{PRIVPOST} {params.arguments} > {log} 2>&1"
