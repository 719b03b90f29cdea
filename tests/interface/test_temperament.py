import pytest

from tensorstore_py.plugin import Driver, KvStore


@pytest.mark.parametrize("promise", [KvStore, Driver])
class TestAClass:
    def test_that_says_nothing_is_refused_when_it_is_made(self, promise):
        with pytest.raises(
            TypeError, match=r"Ice must say .* `inline = True` if .* `inline = False`"
        ):

            class Ice(promise):  # type: ignore[valid-type, misc]
                async def read(self, key, *rest, **options):
                    return None

    def test_that_says_it_anywhere_is_taken(self, promise):
        class Said(promise):  # type: ignore[valid-type, misc]
            inline = False

            async def read(self, *arguments, **options): ...

        class Inherited(Said):
            async def read(self, *arguments, **options): ...

        class Property(promise):  # type: ignore[valid-type, misc]
            @property
            def inline(self):
                return True

            async def read(self, *arguments, **options): ...

        class PerObject(promise):  # type: ignore[valid-type, misc]
            def __init__(self, base):
                self.inline = base.inline

            async def read(self, *arguments, **options): ...

        class Elsewhere(promise):  # type: ignore[valid-type, misc]
            inline: bool

            async def read(self, *arguments, **options): ...

        assert not Inherited.inline

    def test_that_is_abstract_need_not_say_it(self, promise):
        class Base(promise):  # type: ignore[valid-type, misc]
            def helper(self): ...

        with pytest.raises(TypeError, match="Base"):
            Base()
