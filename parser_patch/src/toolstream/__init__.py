"""toolstream: does a server stream tool calls so that every client gets them whole?

`core` judges what was received and does no I/O, `edges` talk to servers, `commands` are the command line's verbs.
"""
