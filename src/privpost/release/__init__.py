"""Private releases of a user's data: from a specification (YAML) and a CSV file to a statement for publication."""
