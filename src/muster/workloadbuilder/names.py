"""Names of the objects that a controller makes: deterministic, at most 253 characters (B11, B12)."""

from __future__ import annotations

MOST = 253
"""The longest name of a DNS subdomain."""
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and no look-alikes, so that no word comes out."""


def workload_name(owner: str, uid: str) -> str:
    """`owner`, shortened if need be, and a hash of the owner's uid (B11).

    What is hashed is the uid as Go prints it with its type.
    """
    hashed = hash_text(f"(types.UID){uid}")
    return _join(owner[: MOST - 1 - len(hashed)], hashed)


def pod_group_name(workload: str, template: str) -> str:
    """The Workload's and the template's name and a hash of both (B12).

    Each may take half of the room, and what the other one leaves.
    """
    hashed = hash_text(workload + template)
    room = MOST - 2 - len(hashed)
    if len(workload) + len(template) > room:
        for_template = max(room // 2, room - len(workload))
        workload = workload[: max(room - room // 2, room - len(template))]
        template = template[:for_template]
    return _join(workload, template, hashed)


def hash_text(text: str) -> str:
    """32-bit FNV-1a in decimal, each digit replaced by a letter that is safe in a name."""
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(value))


def _join(*parts: str) -> str:
    return "-".join(part for part in parts if part)
