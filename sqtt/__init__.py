"""Thread traces: packets as values, buffers to packets and back, and packets to waves and their instructions."""
