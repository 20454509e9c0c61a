"""Container images for machines without a GPU or a public registry, built with buildah.

`python -m localcluster.images serving operator demo --push 127.0.0.1:5000`, or `build_image` and `push_image` from
Python. A real cluster's images come from the repository's Dockerfile and any builder (see README.md).
"""

from localcluster.images.build import ImageName, PushedImage, build_image, push_image

__all__ = ["ImageName", "PushedImage", "build_image", "push_image"]
