"""Thread traces: packets, encoder and decoder. None is built yet."""
