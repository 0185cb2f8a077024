"""Tests of the doors into other tools."""
