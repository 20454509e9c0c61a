"""The one error that callers of localcluster see."""


class ClusterError(RuntimeError):
    """The cluster, or a program for it, could not be had; the message names the next step."""
