"""What every run is made of: the compiled loop, the bar that shows how far it is, and its checkpoint file."""
