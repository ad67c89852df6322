"""Structural schemas of custom resources: what they may be, and what values they take. Pure, over plain JSON.

`rules` says what a schema may be, `values` what is wrong with a value, `filling` prunes and sets defaults, `formats`
knows the formats and patterns, `jsonpath` the small paths of columns, scales and selectable fields.
"""
