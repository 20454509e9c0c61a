"""Types of spec and status, defaults, conditions, reasons, names, labels, the revision hash. Pure."""
