"""What was received, and what is to be thought of it. Nothing here does I/O or reads a clock."""
