"""Nodes that can be bought: NodePools, NodeClaims, requirements, instance types, offerings and their prices."""
