"""The verbs of the command line, without the command line."""
