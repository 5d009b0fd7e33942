"""Where pods want to be relative to one another, and the HyperNodes that describe a topology."""
