"""What simulations are shown as: their results as tables, and the metrics that follow from them."""
