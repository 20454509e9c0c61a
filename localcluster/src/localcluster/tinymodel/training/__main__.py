"""`python -m localcluster.tinymodel.training`: train the stand-in model, measure it, keep its weights."""

from __future__ import annotations

import argparse
import sys
from importlib import resources
from pathlib import Path

import torch

from localcluster.tinymodel.checkpoint import WEIGHTS, trained_config
from localcluster.tinymodel.training import vocabulary
from localcluster.tinymodel.training.encoding import Encoder
from localcluster.tinymodel.training.evaluation import evaluate
from localcluster.tinymodel.training.export import kept, state_of
from localcluster.tinymodel.training.loop import Plan, Trainer
from localcluster.tinymodel.training.model import Gemma4
from localcluster.tinymodel.training.prior import lay_down
from localcluster.tinymodel.weights import read_tensors, write_tensors

FOLDER = Path(str(resources.files("localcluster.tinymodel")))
EXAMPLES = """examples:
  python -m localcluster.tinymodel.training train /tmp/tiny            # or take up again what is in /tmp/tiny
  python -m localcluster.tinymodel.training train /tmp/more --kept --rate 0.3    # go on from the repository's
  python -m localcluster.tinymodel.training evaluate -n 500            # the weights of the repository
  python -m localcluster.tinymodel.training keep /tmp/tiny             # make what was trained the repository's weights
"""


def main() -> int:
    """The command line."""
    options = _parser().parse_args()
    torch.set_num_threads(options.threads)
    if options.command == "vocabulary":
        vocabulary.write(FOLDER / "vocabulary.json", options.seed)
    elif options.command == "train":
        _train(options)
    elif options.command == "keep":
        state = torch.load(options.directory / "state.pt", weights_only=True)
        write_tensors(FOLDER / WEIGHTS, kept(state["model"]))
        sys.stdout.write(f"{FOLDER / WEIGHTS}: {(FOLDER / WEIGHTS).stat().st_size} bytes\n")
    else:
        model = Gemma4(trained_config())
        model.load_state_dict(state_of(read_tensors(options.weights or FOLDER / WEIGHTS)))
        sys.stdout.write(f"{evaluate(model, Encoder(), options.exchanges, options.seed)}\n")
    return 0


def _train(options: argparse.Namespace) -> None:
    plan = Plan(
        steps=options.steps,
        decay=options.decay,
        warmup=0 if options.kept else Plan.warmup,
        tokens=options.tokens,
        seed=options.seed,
        hardest=options.hardest,
        rate=options.rate,
    )
    trainer = Trainer(trained_config(), plan)
    options.directory.mkdir(parents=True, exist_ok=True)
    if (options.directory / "state.pt").exists():
        trainer.load(options.directory / "state.pt")
        sys.stdout.write(f"taking up {options.directory} at step {trainer.step}\n")
    elif options.kept:
        trainer.model.load_state_dict(state_of(read_tensors(FOLDER / WEIGHTS)))
    else:
        lay_down(trainer.model)
    trainer.train(options.directory)


def _share(text: str) -> float:
    share = float(text)
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text} is no share: give a number above 0, at most 1, such as 0.33")
    return share


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m localcluster.tinymodel.training",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--threads", type=int, default=1, help="threads of torch (default: 1)")
    shared.add_argument("--seed", type=int, default=1, help="decides everything random (default: 1)")
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", parents=[shared], help="train; Ctrl-C loses at most five minutes")
    train.add_argument("directory", type=Path, help="where the state is kept")
    train.add_argument("--steps", type=int, default=5500, help="updates in all (default: 5500)")
    train.add_argument("--decay", type=int, default=4000, help="of these, with a falling learning rate (default: 4000)")
    train.add_argument("--kept", action="store_true", help="begin with the repository's weights instead of at nothing")
    train.add_argument("--rate", type=float, default=1.0, help="factor of the learning rates (default: 1)")
    train.add_argument(
        "--hardest", type=_share, default=1.0, help="learn from this share of all exchanges (default: 1)"
    )
    train.add_argument("--tokens", type=int, default=4096, help="tokens of an update (default: 4096)")
    score = commands.add_parser("evaluate", parents=[shared], help="exact answers, on names that training never shows")
    score.add_argument("-n", "--exchanges", type=int, default=200, help="held-out exchanges (default: 200)")
    score.add_argument("--weights", type=Path, help="a file of kept weights (default: the repository's)")
    keep = commands.add_parser("keep", parents=[shared], help="round the trained weights and put them in their place")
    keep.add_argument("directory", type=Path, help="where `train` kept its state")
    commands.add_parser("vocabulary", parents=[shared], help="choose the tokens anew; the weights are then worthless")
    return parser


if __name__ == "__main__":
    sys.exit(main())
