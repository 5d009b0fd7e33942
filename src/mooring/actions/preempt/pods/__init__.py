"""Room for one pod: who may go, from which node, at which cost."""
