"""The servers that there are recipes for, by name."""

from __future__ import annotations

from tests.servers.moto import Moto
from tests.servers.recipe import Recipe

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (Moto(),)}
