"""What every run is made of: compiled chunks, the loop on the host, devices, checkpoints and what identifies a run."""
