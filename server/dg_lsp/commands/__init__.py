"""What workspace/executeCommand can run: a table of names, argument types and handlers."""
