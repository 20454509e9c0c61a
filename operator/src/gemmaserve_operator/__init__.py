"""GemmaServe's operator."""
