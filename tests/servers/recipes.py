"""The servers that there are recipes for, by name."""

from __future__ import annotations

from tests.servers.chromium import Chromium
from tests.servers.gcs import Gcs
from tests.servers.moto import Moto
from tests.servers.nginx import Nginx
from tests.servers.recipe import Recipe
from tests.servers.rgw import Rgw
from tests.servers.swift import Swift

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe for recipe in (Moto(), Rgw(), Swift(), Nginx(), Gcs(), Chromium())
}
