"""One builder a child object: `build_*(...) -> dict`. Pure."""
