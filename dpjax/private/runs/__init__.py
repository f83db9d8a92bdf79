"""Private runs: charged in parts before they are made, without losing draws that were charged."""
