"""What every run is made of: the compiled loop, and the bar that shows how far it is."""
