"""The life of a pod on a node, from binding to its end: no clock, no chance and no I/O of its own."""
