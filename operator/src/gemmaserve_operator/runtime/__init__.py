"""The work queue, the reconciler, probes, metrics, settings and `main`; handlers.py alone imports kopf."""
