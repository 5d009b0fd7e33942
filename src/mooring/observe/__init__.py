"""What can be watched while Mooring workloads."""
