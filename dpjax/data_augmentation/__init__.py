"""Data augmentation: confidential records or counts are imputed given the parameters, and parameters given these."""
