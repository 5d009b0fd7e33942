"""Admission: what changes or refuses a request before it is carried out, as in a cluster; listed in `chain.py`."""
