"""How the stand-in model's weights were trained, on two CPU cores: `python -m localcluster.tinymodel.training --help`.

`names` makes up files and cities, `actions` the tools and what is asked of them, `conversations` whole exchanges,
`encoding` turns those into tokens; `model` is Gemma 4 in plain torch, `loop` trains it, `evaluation` measures it
greedily on names that training never shows. Only `names`, `actions` and `conversations` run without torch.
"""
