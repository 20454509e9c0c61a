"""`kubectl gemmaserve`: what a GemmaServe waits for, its history, and what a user can have done about it."""
