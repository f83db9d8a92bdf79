"""Problems that tests and benchmarks share: models, releases and exact answers."""
