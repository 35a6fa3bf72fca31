"""What is run, identically everywhere: tiers, trajectories, recorded trajectories, and the tasks they act on."""
