"""Pages for people: they lay out what a summary holds and never compute."""
