"""Makes the scorecard of claims, the README and other documents, and the report page."""
