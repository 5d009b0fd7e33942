"""What is written into the status of PodGroups."""
