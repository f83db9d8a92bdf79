"""STUB."""

import jax


def draw_multinomial(key, n, p):
    return jax.random.multinomial(key, n, p / p.sum()).astype(int)
