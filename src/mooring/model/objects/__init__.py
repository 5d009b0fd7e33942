"""Objects by kind: which kinds are read, what jobs of each kind are made of, and a cluster as its objects show it."""
