"""What of each architecture is there: decoded, assembled, given semantics, run, confirmed by hardware."""
