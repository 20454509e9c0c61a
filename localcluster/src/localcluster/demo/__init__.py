"""`make demo`: the main job end to end on this machine, with progress shown."""
