"""Conversion between bytes and model: codecs, bodies, documents, stream framings. No I/O."""
