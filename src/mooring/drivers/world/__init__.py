"""What happens to pods and nodes where there is no cluster: one world for stories, simulations and measurements."""
