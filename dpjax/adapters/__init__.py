"""The only files that import optional host libraries."""
