"""One release of noisy sums over confidential records, from which anyone may draw for ever."""
