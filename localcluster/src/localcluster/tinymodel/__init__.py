"""The models that stand in for one that needs a GPU: tiny checkpoints of the real Gemma 4 architecture.

`checkpoint` writes both. The trained one calls tools (see `training`): the demo and the end-to-end tests use it. The
other has random weights, and the vLLM plugin `forced_decoding` makes it say what a request dictates: for tests and
benchmarks that need exact output. None of it is part of what GemmaServe ships.
"""
