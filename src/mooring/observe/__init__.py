"""What can be watched while Mooring works."""
