"""ResourceQuota and LimitRange: what a namespace may hold, enforced as the API server does, in its words.

`admission.py` applies both to all manifests at once. Below it: `namespace_limits.py` (defaults and bounds of single
pods and claims), `namespace_quotas.py` (what is used of what there is, object by object; also for who gets them one at
a time), and what these read: `pod_usage.py`, `object_usage.py`, `scopes.py` and `amounts.py`.
"""
