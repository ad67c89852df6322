"""Claims for devices: made from templates, let go when nobody uses them."""

from muster.controllers.resourceclaims.controller import ResourceClaims as ResourceClaims
