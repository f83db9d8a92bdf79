"""What a run returns and what can be asked of it."""
