"""Atomic tool-call parsers for Gemma 4 and gpt-oss (Harmony)."""
