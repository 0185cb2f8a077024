"""Doors into other tools: one small file for each, which needs that tool and lets the grader decide every score."""
