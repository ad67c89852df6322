"""Kinds that users define by CustomResourceDefinitions: served, stored, checked, shown and deleted like any other."""
