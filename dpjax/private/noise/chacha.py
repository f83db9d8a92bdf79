"""Random bytes that nobody can predict: ChaCha20 under a key from the operating system."""

import os


def keystream(num_bytes: int) -> bytes:
    """So many bytes of a ChaCha20 keystream under a fresh 256-bit key of `os.urandom`.

    Every call has a key of its own and nothing is kept. So no stream can repeat: not after a fork, not between
    threads, not when a program is restored from a snapshot of its memory.

    Raises
    ------
    ImportError
        If cryptography is not installed.
    """
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
    except ImportError as error:
        need = "expected for noise.secure"
        raise ImportError(f'cryptography: not installed; {need}. Run pip install "dpjax[privacy]".') from error
    start = bytes(16)  # counter and nonce may be zero under a key that is used once
    return Cipher(ChaCha20(os.urandom(32), start), mode=None).encryptor().update(bytes(num_bytes))
