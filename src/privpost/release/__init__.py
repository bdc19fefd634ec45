"""Private releases of a user's data. A YAML specification and a CSV file give a statement that can be published."""
