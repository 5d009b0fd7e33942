"""Simulations as one page of HTML that needs nothing else: charts and tables, policies side by side."""
