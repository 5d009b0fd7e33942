"""`mooring run --shadow`: decide on a real cluster beside its present scheduler, and change nothing."""
