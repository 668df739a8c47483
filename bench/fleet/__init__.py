"""Many editors on one engine: how many can type before answers come late."""
