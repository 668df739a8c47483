"""What may be read and what may be shown to a model: one place for both."""
