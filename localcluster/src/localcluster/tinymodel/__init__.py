"""The stand-in model of `make demo` and the end-to-end tests: a tiny checkpoint of the real Gemma 4 architecture.

`checkpoint` writes it; `forced_decoding` is the vLLM plugin that makes its random weights say what a request dictates.
Neither is part of what GemmaServe ships: both stand in for a model that needs a GPU.
"""
