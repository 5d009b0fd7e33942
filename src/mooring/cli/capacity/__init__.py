"""`mooring capacity`"""
