"""Provisioning and consolidation as Karpenter does them: scheduling is simulated, onto nodes that may not exist yet."""
