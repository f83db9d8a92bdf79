"""Posteriors of large tables: their cost by number of people, and a county's beside least squares."""
