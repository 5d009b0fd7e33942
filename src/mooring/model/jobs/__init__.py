"""The kinds of jobs that other controllers run: the pod sets they queue as, and the pods they become."""
