"""The experiments of Ju, Awan, Gong and Rao (2022)."""
