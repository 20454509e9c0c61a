"""The incremental scanners. Standard library only; knows nothing of vLLM."""
