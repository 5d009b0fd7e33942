"""ElasticQuotas, as scheduler-plugins' CapacityScheduling and Koordinator have them: what a team can insist on, and the
most it may have. `queues.py` makes queues of them; all else is done as for other queues.
"""
