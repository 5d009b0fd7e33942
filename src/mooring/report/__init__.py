"""What people are shown, as typed data: commands and pages draw it."""
