"""How labels, records and the mixing measure are moved."""
