"""Bytes to model and back: codecs, request bodies, documents, stream framings. No I/O."""
