"""What is wrong with a user's scheduling blocks, said at the user's own paths (B13-B17).

The rules are those of the API for the building blocks (V14-V19), where counts may be left to the controller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from muster.api.validation import FieldError, Path, Type
from muster.api.validation.names import dns_label, dns_subdomain, label_key
from muster.workloadbuilder import shapes
from muster.workloadbuilder.items import Block, BuildOptions, UserBlock, WorkloadItem

MOST_TOPOLOGY_KEYS = 1
MOST_CLAIMS = 4


def validate_tree(
    item: WorkloadItem | None, options: BuildOptions, root_path: str, old: WorkloadItem | None = None
) -> list[FieldError]:
    """Errors of every item of the tree, and of its change from `old` if there is an old one."""
    if item is None:
        return [FieldError(root_path, Type.INTERNAL, "there is no item to validate")]
    if old is not None and old.name != item.name:
        return [
            FieldError(root_path, Type.INTERNAL, f"an update of {old.name!r} by {item.name!r}: not the same workload")
        ]
    root = Path(root_path)
    misshapen = [error for each in items(item) for error in _shape_errors(each, root)]
    if misshapen:
        return misshapen
    errors = [error for each in items(item) for error in _item_errors(each, options, root)]
    if old is not None:
        errors += _update_errors(item, old, root)
    return errors


def items(item: WorkloadItem) -> Iterator[WorkloadItem]:
    """The item and all below it; empty children are left out."""
    yield item
    for child in item.children:
        if child is not None:
            yield from items(child)


def block_of(item: WorkloadItem, block: UserBlock | None) -> Any:
    """The part of a user's block that fits the item."""
    return None if block is None else block.composite if item.composite else block.leaf


def _shape_errors(item: WorkloadItem, root: Path) -> Iterator[FieldError]:
    user = item.user
    for block, shape in (
        (user.policy, shapes.POLICY),
        (user.constraints, shapes.CONSTRAINTS),
        (user.disruption_mode, shapes.MODE),
        (user.resource_claims, shapes.CLAIMS),
    ):
        yield from shapes.shape_errors(block_of(item, block), shape, _below(root, block))


def _item_errors(item: WorkloadItem, options: BuildOptions, root: Path) -> Iterator[FieldError]:
    user = item.user
    policy, mode = block_of(item, user.policy), block_of(item, user.disruption_mode)
    if policy is not None:
        path = _below(root, user.policy)
        yield from _not_allowed(policy, options.allowed_policies, path, "scheduling policy")
        if not options.disable_declarative_validation:
            yield from _policy_errors(policy, "minGroupCount" if item.composite else "minCount", path)
    if mode is not None:
        path = _below(root, user.disruption_mode)
        yield from _not_allowed(mode, options.allowed_disruption_modes, path, "disruption mode")
        if not options.disable_declarative_validation:
            yield from _union_errors(mode, ("single", "all"), path)
    if not options.disable_declarative_validation:
        yield from _constraint_errors(block_of(item, user.constraints), _below(root, user.constraints))
        yield from _claim_errors(block_of(item, user.resource_claims), _below(root, user.resource_claims))
    yield from _basic_with_all(item, root)


def _below(root: Path, block: UserBlock | None) -> Path:
    path = root
    for step in block.path if block is not None else ():
        path = path / step
    return path


def _not_allowed(block: Block, allowed: Sequence[str] | None, path: Path, what: str) -> Iterator[FieldError]:
    if allowed is None:
        return
    for choice in _members(block):
        if choice not in allowed:
            listed = f"allowed: {', '.join(allowed)}" if allowed else "none may be chosen here"
            yield path.forbidden(f"{what} {choice!r} is not allowed; {listed}")


def _policy_errors(policy: Block, count: str, path: Path) -> Iterator[FieldError]:
    yield from _union_errors(policy, ("basic", "gang"), path)
    given = (policy.get("gang") or {}).get(count)
    if given is not None and given < 1:
        yield (path / "gang" / count).invalid(given, "must be greater than or equal to 1")


def _union_errors(block: Block, members: tuple[str, ...], path: Path) -> Iterator[FieldError]:
    chosen = [member for member in members if block.get(member) is not None]
    if len(chosen) != 1:
        yield path.invalid(dict(block), f"must specify exactly one of: {', '.join(members)}")


def _members(block: Block) -> list[str]:
    return [member for member, value in block.items() if value is not None]


def _constraint_errors(constraints: Block | None, path: Path) -> Iterator[FieldError]:
    topology = (constraints or {}).get("topology") or ()
    if len(topology) > MOST_TOPOLOGY_KEYS:
        yield (path / "topology").too_many(len(topology), MOST_TOPOLOGY_KEYS)
    for index, constraint in enumerate(topology):
        field = path / "topology" // index / "key"
        key = constraint.get("key")
        if not key:
            yield field.required("name the node label whose values are the domains")
        elif problem := label_key(key):
            yield field.invalid(key, problem)


def _claim_errors(claims: Sequence[Block] | None, path: Path) -> Iterator[FieldError]:
    claims = claims or ()
    if len(claims) > MOST_CLAIMS:
        yield path.too_many(len(claims), MOST_CLAIMS)
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        field, name = path // index, claim.get("name") or ""
        if not name:
            yield (field / "name").required()
        elif problem := dns_label(name):
            yield (field / "name").invalid(name, problem)
        if name and name in seen:
            yield field.duplicate(name)
        seen.add(name)
        yield from _union_errors(claim, ("resourceClaimName", "resourceClaimTemplateName"), field)
        for source in ("resourceClaimName", "resourceClaimTemplateName"):
            value = claim.get(source)
            if value is not None and (problem := dns_subdomain(value)):
                yield (field / source).invalid(value, problem)


def _basic_with_all(item: WorkloadItem, root: Path) -> Iterator[FieldError]:
    """Evicting all pods at once makes no sense where pods are scheduled one by one (B16)."""
    policy = block_of(item, item.user.policy) or item.default.policy or {"basic": {}}
    mode = block_of(item, item.user.disruption_mode) or item.default.disruption_mode or {}
    if policy.get("basic") is not None and mode.get("all") is not None:
        at = item.user.disruption_mode if block_of(item, item.user.disruption_mode) is not None else item.user.policy
        yield _below(root, at).invalid(
            dict(mode), "disruption mode all needs the gang policy; use single, or schedule the pods as a gang"
        )


def _update_errors(new: WorkloadItem, old: WorkloadItem, root: Path) -> Iterator[FieldError]:
    before = {item.name: item for item in items(old)}
    for item in items(new):
        was = before.pop(item.name, None)
        if was is None or was.composite != item.composite:
            yield root.forbidden(f"{item.name!r} cannot be added to a workload that exists")
            continue
        for attribute in ("policy", "constraints", "disruption_mode", "resource_claims"):
            yield from _change_errors(attribute, item, was, root)
    for name in before:
        yield root.forbidden(f"{name!r} cannot be removed from a workload that exists")


def _change_errors(attribute: str, item: WorkloadItem, was: WorkloadItem, root: Path) -> Iterator[FieldError]:
    """Only the minCount of a leaf may change (B17, V28)."""
    block: UserBlock | None = getattr(item.user, attribute)
    value, previous = block_of(item, block), block_of(was, getattr(was.user, attribute))
    if attribute == "policy" and not item.composite:
        same = _without_count(value) == _without_count(previous)
    else:
        same = value == previous
    if not same:
        yield _below(root, block or getattr(was.user, attribute)).invalid(value, "field is immutable")


def _without_count(policy: Any) -> Any:
    if not policy or policy.get("gang") is None:
        return policy
    return {**policy, "gang": {key: value for key, value in policy["gang"].items() if key != "minCount"}}
