"""Pure arithmetic on measured times: no clock, no disk, no randomness of its own."""
