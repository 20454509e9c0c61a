"""The errors that callers of localcluster see."""


class ClusterError(RuntimeError):
    """The cluster, or a program for it, could not be had; the message names the next step."""


class ProgramEndedError(ClusterError):
    """A program of the cluster ended while the cluster was being started."""
