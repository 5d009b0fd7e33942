"""Documents in, objects out: read, checked, given the API server's defaults, expanded to pods."""
