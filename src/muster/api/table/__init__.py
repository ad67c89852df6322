"""Rows of the catalog, by API group; `muster.api.catalog` puts them together."""
