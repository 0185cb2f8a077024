"""Models: the protocol, one HTTP client with a pure codec for each wire format, a baseline, and replay."""
