"""Linear regression from noisy second moments on census records: against one posterior draw at the same ε."""
