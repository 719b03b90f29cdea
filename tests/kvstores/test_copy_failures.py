"""Copies between stores of two modes that fail: nothing of them goes on afterwards."""

import asyncio
import threading

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.file.spec import FileSpec
from tensorstore_py.testing import LoopStore, StoreAround


def test_no_file_is_written_after_the_error(tmp_path, monkeypatch):
    """Who removes what a copy left behind, and tries again, must not find it there anew."""
    source, target = tmp_path / "far", tmp_path / "near"
    there = ts.KvStore.open(f"file://{source}/").result()
    there["a"], there["b"] = b"1", b"2"
    begun, go_on = threading.Event(), threading.Event()
    opened = FileSpec.open

    class Failing(LoopStore):
        async def read(self, key, *arguments, **options):
            if key.endswith("/b"):
                await asyncio.to_thread(begun.wait)
                asyncio.get_running_loop().call_later(0.2, go_on.set)
                raise ts.UnavailableError("unplugged")
            return await super().read(key, *arguments, **options)

    class Slow(StoreAround):
        async def write(self, key, value, **options):
            begun.set()
            assert go_on.wait(60)
            return await super().write(key, value, **options)

    def around(spec):
        return (Failing if "/far/" in spec.path else Slow)(opened(spec))

    monkeypatch.setattr(FileSpec, "open", around)
    from_, to = (ts.KvStore.open(f"file://{each}/").result() for each in (source, target))

    with pytest.raises(ts.UnavailableError, match="unplugged"):
        from_.experimental_copy_range_to(to).result()
    written = [each.name for each in target.iterdir()]

    monkeypatch.undo()
    ts.KvStore.open(f"file://{target}/").result().delete_range(ts.KvStore.KeyRange()).result()
    go_on.set()
    assert written == ["a"]
    assert [*target.iterdir()] == []
