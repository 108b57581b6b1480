"""The version, alone in its file so that building a wheel needs no imports."""

__version__ = "0.1.0"
