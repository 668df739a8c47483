"""Next edits: what an edit that was just made suggests for other places of the same file."""
