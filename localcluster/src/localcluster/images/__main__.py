"""`python -m localcluster.images`: build the images, and push them where a cluster finds them."""

from __future__ import annotations

import argparse
import sys
from typing import get_args

from localcluster.images.build import ImageName, Parser, build_image, push_image
from localcluster.images.shell import CommandError

_DESCRIPTION = """Build container images for a machine without a GPU or a public registry.

  python    a minimal Debian with Python
  base      vLLM for CPUs on it
  serving   the Dockerfile's target of that name on `base`: vLLM and the parser
  operator  the Dockerfile's target of that name
  demo      `serving` and the stand-in model of `make demo`

Each prints one line on standard output: its name in buildah's storage, or with --push its reference by digest.
What was built from the same sources before is not built again."""

_EXAMPLES = """examples:
  python -m localcluster.images demo operator --push 127.0.0.1:5000
  python -m localcluster.images serving
  python -m localcluster.images demo --parser upstream --skip-smoke --push 127.0.0.1:5000"""


def main() -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m localcluster.images",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("images", nargs="+", choices=get_args(ImageName), metavar="IMAGE", help="one or more of these")
    parser.add_argument("--push", metavar="REGISTRY", help="push to this registry (host:port, plain HTTP)")
    parser.add_argument(
        "--parser",
        choices=get_args(Parser),
        default="ours",
        help="`upstream` takes our parser's registration out; the build then fails in its smoke check (default: ours)",
    )
    parser.add_argument("--skip-smoke", action="store_true", help="with --parser upstream: make the image all the same")
    arguments = parser.parse_args()
    try:
        for name in arguments.images:
            if arguments.push:
                pushed = push_image(name, arguments.push, parser=arguments.parser, skip_smoke=arguments.skip_smoke)
                print(pushed.reference)
            else:
                print(build_image(name, parser=arguments.parser, skip_smoke=arguments.skip_smoke))
    except (CommandError, ConnectionError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
