"""Volumes made for claims, or the reason why not: the hollow driver's part of the volume controller."""

from __future__ import annotations

from muster.api.instant import Instant
from muster.api.machine import Effect
from muster.api.object import Object
from muster.api.storage import (
    BETA_STORAGE_PROVISIONER,
    NO_PROVISIONER,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    CsiDriver,
    StorageClass,
)
from muster.controllers.volumes import provisioning
from muster.controllers.volumes.known import CAPACITIES, CSI_NODES, DRIVERS, Known
from muster.controllers.volumes.matching import claim_of
from muster.controllers.volumes.outbox import Outbox, annotation


class Maker:
    """Makes the volume of a claim that has a class and found none; who gets none goes back to the scheduler."""

    def __init__(self, known: Known, out: Outbox) -> None:
        self._known, self._out = known, out

    def make(self, claim: Object, storage_class: Object, node: Object | None, now: Instant) -> list[Effect]:
        """`node`: the one that was chosen, if it is there."""
        provisioner, chosen = storage_class.view(StorageClass).provisioner, annotation(claim, SELECTED_NODE)
        if provisioner == NO_PROVISIONER:
            return self._refuse(claim, f"no volume plugin matched name: {NO_PROVISIONER}", now)
        if annotation(claim, STORAGE_PROVISIONER) != provisioner:
            notes = {STORAGE_PROVISIONER: provisioner, BETA_STORAGE_PROVISIONER: provisioner}
            return self._out.patch_claim(claim, {"metadata": {"annotations": notes}})
        try:
            if claim_of(claim).spec.selector is not None:
                raise provisioning.Refusal("claim Selector is not supported")
            if chosen and node is None:
                raise provisioning.Refusal(f"selected node {chosen} does not exist")
            if self._reports_capacity(provisioner):
                provisioning.check_room(claim, storage_class, node, self._known.of(CAPACITIES))
            csi_node = self._known.get(CSI_NODES, chosen) if chosen else None
            made = provisioning.volume(claim, storage_class, provisioning.place(claim, storage_class, node, csi_node))
        except provisioning.Refusal as refusal:
            return self._refuse(claim, str(refusal), now)
        why = f"Successfully provisioned volume {made['metadata']['name']}"
        return [*self._out.create_volume(made), *self._out.say(claim, "ProvisioningSucceeded", why, now)]

    def _reports_capacity(self, provisioner: str) -> bool:
        driver = self._known.get(DRIVERS, provisioner)
        return driver is not None and bool(driver.view(CsiDriver).spec.storage_capacity)

    def _refuse(self, claim: Object, why: str, now: Instant) -> list[Effect]:
        """Says so; of a claim whose node was chosen, the choice is taken back."""
        effects = self._out.say(claim, "ProvisioningFailed", why, now, warning=True)
        if annotation(claim, SELECTED_NODE):
            effects += self._out.patch_claim(claim, {"metadata": {"annotations": {SELECTED_NODE: None}}})
        return effects
