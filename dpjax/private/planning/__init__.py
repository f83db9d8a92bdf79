"""Settings of DP-HMC from public information."""
