"""Private releases of a user's own data: a specification in YAML, a CSV file, and a statement that can be published."""
