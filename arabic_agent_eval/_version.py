"""The version, in a file of its own so that the build and every signature read the same one."""

__version__ = "0.2.0"
