"""A one-node Kubernetes built from Go modules, for demos and tests.

    from localcluster import Cluster

    with Cluster.start(name="contract") as cluster:            # API server, etcd, controller manager: no root, no node
        cluster.kubectl("apply", "-f", "crd.yaml")             # stdout; a failure raises ClusterError with stderr
        env = {"KUBECONFIG": str(cluster.kubeconfig)}          # admin

    with Cluster.start(name="e2e", node=True, gpus=2) as cluster:   # and a node that runs containers: root, Debian
        cluster.registry                                       # "10.201.0.2:5000": plain HTTP, from host and in pods
        cluster.load(Path("image.tar"))                        # an OCI archive, straight into containerd

On the command line: `localcluster up|down|status|env|build`, see `localcluster --help`.

`Cluster.start` returns when the cluster can be used: the API server is ready, controllers work, the node is Ready.
What already runs under that name is kept and what is missing is started, so a start after any failure recovers.
A cluster started with `with` (or without `keep=True`) belongs to the calling process: `stop()` or the end of the
`with` block removes it and everything it left, and so does the next start of any cluster if that process has died.

The host reaches every address inside a cluster with a node: API server, registry, pods and ClusterIPs.
`Cluster.existing()` is the cluster that the user names by KUBECONFIG, or None.
"""

from localcluster.cluster import Cluster
from localcluster.errors import ClusterError
from localcluster.tools import program

__all__ = ["Cluster", "ClusterError", "program"]
