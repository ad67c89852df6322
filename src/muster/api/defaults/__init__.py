"""Defaults, and what is dropped before validation: one module per family of kinds.

Copy on write: a function here replaces the values along the path it changes and never writes into a nested value that
it was given, so an object may share structure with the store and with whoever sent it.
"""
