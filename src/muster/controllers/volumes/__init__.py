"""The volume controllers: claims get volumes, bound or made for them; claims of pods, made and kept."""

from muster.controllers.volumes.controller import Volumes
from muster.controllers.volumes.drivers import Drivers
from muster.controllers.volumes.uses import Claims

__all__ = ["Claims", "Drivers", "Volumes"]
