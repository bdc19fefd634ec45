"""What a reader sees: the scorecard of claims, the quoted numbers, the README and the report page."""
