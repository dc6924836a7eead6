"""Counts lines, functions and classes of Python code."""
