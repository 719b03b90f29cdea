"""Counts up in a bucket, under conditions: run as a program, by several processes at a time.

    python counting.py SPEC KEY WRITERS TIMES

SPEC is the store's JSON; keys of AWS are in the environment. Prints how often it was refused.
"""

import asyncio
import json
import sys

import tensorstore_py as ts


async def count(store: ts.KvStore, key: str, times: int) -> int:
    """Count up that often; returns how often another writer came first."""
    refused = 0
    for _ in range(times):
        while True:
            found = await store.read(key)
            following = b"%d" % (int(found.value) + 1)
            stamp = await store.write(key, following, if_equal=found.stamp.generation)
            if stamp.generation:
                break
            refused += 1
    return refused


async def main(spec: str, key: str, writers: int, times: int) -> None:
    """Several writers of one process."""
    store = await ts.KvStore.open(json.loads(spec))
    refused = await asyncio.gather(*[count(store, key, times) for _ in range(writers)])
    print(sum(refused))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
