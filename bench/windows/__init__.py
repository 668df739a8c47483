"""Several windows on one engine: what each costs, and how long each waits."""
