"""The command line: one module per command, imported light so that --help answers at once."""
