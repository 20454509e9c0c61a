"""A one-node Kubernetes built from Go modules, for demos and tests."""
