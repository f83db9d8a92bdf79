"""A private run: charged part by part before it is made, and never losing what was paid for."""
