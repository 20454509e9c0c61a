"""Between the scanners and vLLM: one module a vLLM generation, and what the generations share.

| module | what it is |
|---|---|
| `versions` | the vLLM versions that were tested, and the refusal of others |
| `answer` | one choice's answer: the scanner set up for its request, ids, and what may share a delta |
| `steps` | where the engine's outputs pass: how an answer ended, and further steps where one is not enough |
| `parsers` | the parser classes, of whatever base classes the installed vLLM has |
| `chat` | finish_reason, where the installed vLLM decides it wrongly |
| `responses_0_20` | the stream of the responses API, before vLLM's own could take whole calls |
| `vllm_0_20`, `vllm_0_24` | the generations: imports, and what is registered or replaced |

Gemma 4's are not imported before vLLM asks for one of our parsers by name.
"""
