"""Load and abuse: many changes on a large file, and messages that no editor should send."""
