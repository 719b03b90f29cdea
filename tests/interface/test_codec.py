"""Codecs: one by one, in chains and lists, of fields, and of streams."""

import pickle
import zlib
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
import pytest

from tensorstore_py import DataLossError, MismatchError, SpecError, UnsupportedError, dtype
from tensorstore_py.drivers.zarr.data_type import StoredType
from tensorstore_py.plugin.codec import (
    ArrayToArraySpec,
    ArrayToBytesSpec,
    BytesToBytes,
    BytesToBytesSpec,
    ChunkType,
    CodecChain,
    CodecModel,
    Sharded,
    ShardedSpec,
    StreamCodec,
    element_type,
    size_error,
)
from tensorstore_py.plugin.driver import (
    OPAQUE,
    ElementView,
    FieldBytes,
    bind_chain,
    codec_to_json,
    codecs_to_json,
    merge_chains,
    normalised,
    parse_codec_json,
    parse_codec_list,
    resolve_chain,
    split_chain,
)
from tensorstore_py.plugin.kvstore import decode_streams
from tensorstore_py.testing.codecs import assert_same_bits, chunk_type, layouts, sample


class Half(BytesToBytes):
    """A codec that decodes to half of what it is given, whatever was asked."""

    def encode(self, data):
        return bytes(data) * 2

    def decode(self, data, size=None):
        return data[: len(data) // 2]


class TwoMembers(CodecModel):
    codec_id = "two"
    a: int | None = None
    b: int | None = None


class VainArray(ArrayToArraySpec):
    codec_id = "vain"


class VainSerializer(ArrayToBytesSpec):
    codec_id = "vain"


class VainCompressor(BytesToBytesSpec):
    codec_id = "vain"


def chunk(shape: tuple[int, ...], dtype: str) -> ChunkType:
    return ChunkType(shape, np.dtype(dtype), np.zeros((), dtype))


class TestCodec:
    def test_a_chunk_knows_its_size(self) -> None:
        assert chunk_type((2, 3), "complex128").size_bytes == 96
        assert chunk_type((), "uint8").size_bytes == 1
        assert OPAQUE.dtype.itemsize == 0
        assert OPAQUE.is_opaque
        assert not chunk_type((), "uint8").is_opaque

    def test_decoding_into_memory_is_decoding_and_copying_by_default(self) -> None:
        out = bytearray(3)

        Half().decode_into(b"abcabc", memoryview(out))

        assert out == b"abc"
        with pytest.raises(DataLossError, match="decoded to 3 bytes, expected 4"):
            Half().decode_into(b"abcabc", memoryview(bytearray(4)))
        assert Half().encoded_size(3) is None
        assert "decoded to 1 bytes" in str(size_error(1, 2))

    @pytest.mark.parametrize("kind", [VainArray, VainSerializer, VainCompressor])
    def test_a_spec_without_a_binding_says_so(self, kind: type[VainArray]) -> None:
        with pytest.raises(UnsupportedError, match='"vain"'):
            kind().bind(chunk_type((2,), np.uint8))

    def test_a_spec_is_resolved_as_it_is_by_default(self) -> None:
        spec = TwoMembers(a=1)

        assert spec.resolved(OPAQUE) is spec

    @pytest.mark.parametrize(
        ("family", "json"),
        [
            ("zarr3", "gzip"),
            ("zarr3", {"name": "numcodecs.gzip", "configuration": {"level": 3}}),
            ("zarr", {"id": "delta", "dtype": "<i4"}),
            ("n5", {"type": "bzip2", "blockSize": 3}),
        ],
    )
    def test_specs_are_pickled_whatever_the_format(self, family: str, json: object) -> None:
        spec = parse_codec_json(family, json)

        copy = pickle.loads(pickle.dumps(spec))

        assert copy == spec
        assert type(copy) is type(spec)
        assert codec_to_json(family, copy) == codec_to_json(family, spec)

    def test_members_merge_where_they_agree_or_one_is_silent(self) -> None:
        assert TwoMembers(a=1).merged(TwoMembers(b=2)) == TwoMembers(a=1, b=2)
        assert TwoMembers(a=1).merged(TwoMembers(a=1)) == TwoMembers(a=1)
        with pytest.raises(MismatchError, match='codec "two": "a" is both 1 and 2'):
            TwoMembers(a=1).merged(TwoMembers(a=2))

    @pytest.mark.parametrize(
        ("json", "text"),
        [
            ("<i4", "<i4"),
            (">f8", ">f8"),
            ("i2", "<i2"),
            ("u1", "|u1"),
            ("|b1", "|b1"),
            ("?", "|b1"),
            ("bool", "|b1"),
            ("int16", "<i2"),
            ("complex128", "<c16"),
            ("<U5", "<U5"),
            ("S3", "|S3"),
            ("<M8[ns]", "<M8[ns]"),
            (">m8[10us]", ">m8[10us]"),
        ],
    )
    def test_plain_types_are_written_in_one_way(self, json: str, text: str) -> None:
        assert element_type(json) == text

    @pytest.mark.parametrize(
        "json",
        ["|O", "object", "i4,i4", "(2,)i4", "<i3", "int17", "S0", "U", "", "<", 4, None, ["<i4"],
         "i4 ", "<M8", "M8[x]", "bfloat16", "{'names': ['a']}", "S99999999999"],
    )  # fmt: skip
    def test_anything_else_is_refused(self, json: object) -> None:
        with pytest.raises(SpecError, match="expected an element type"):
            element_type(json)

    def test_elements_of_one_size_keep_the_shape(self) -> None:
        assert chunk((2, 3), "<f4").viewed_as(np.dtype(">i4")).shape == (2, 3)
        assert chunk((2, 3), "<f4").viewed_as(np.dtype("<i2")).shape == (12,)
        assert chunk((2, 3), "|u1").viewed_as(np.dtype("<i2")).shape == (3,)
        assert chunk((), "<f8").viewed_as(np.dtype("<i2")).shape == (4,)

    def test_what_cannot_be_seen_so_is_refused(self) -> None:
        with pytest.raises(SpecError, match="6 bytes are no whole number"):
            chunk((2, 3), "|u1").viewed_as(np.dtype("<i4"))
        with pytest.raises(SpecError, match="Python objects here"):
            ChunkType((2,), np.dtype(object), np.array(None)).viewed_as(np.dtype("<i4"))

    def test_any_memory_order_is_seen_in_c_order(self) -> None:
        array = np.asfortranarray(np.arange(6, dtype="<u2").reshape(2, 3))

        assert chunk((12,), "|u1").flat(array).tolist() == [0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0]

    @pytest.mark.parametrize("order", "<>")
    def test_numbers_that_are_no_characters_are_found(self, order: str) -> None:
        text = np.array([["ab", "\U0010ffff"], ["", "c"]], f"{order}U2")
        record = np.zeros(3, [("n", "u1"), ("deep", [("t", f"{order}U2", (2,))])])
        CHUNK.check_elements(text)
        CHUNK.check_elements(text[:, ::-1])
        CHUNK.check_elements(record)
        CHUNK.check_elements(np.array([2**32 - 1], "<u4"))
        CHUNK.check_elements(np.empty(0, "<U3"))

        text.view(f"{order}u4")[1, 2] = 0x110000
        record["deep"]["t"].view(f"{order}u4")[1, 2] = 2**32 - 1

        with pytest.raises(DataLossError, match="0x110000"):
            CHUNK.check_elements(text)
        with pytest.raises(DataLossError, match="0xffffffff"):
            CHUNK.check_elements(record)


CHUNK = chunk_type((4, 6), "uint16")


TURN = {"name": "transpose", "configuration": {"order": [1, 0]}}


BIG = {"name": "bytes", "configuration": {"endian": "big"}}


class Recorder(BytesToBytes):
    """Stores bytes as they are, and remembers where it was to decode to."""

    def __init__(self) -> None:
        self.outs: list[memoryview] = []

    def encode(self, data):
        return bytes(data)

    def decode(self, data, size=None):
        return bytes(data)

    def decode_into(self, data, out: memoryview) -> None:
        self.outs.append(out)
        super().decode_into(data, out)


def recorded(codecs: list) -> tuple[CodecChain, Recorder]:
    chain = bind_chain(parse_codec_list("zarr3", codecs), CHUNK)
    recorder = Recorder()
    return CodecChain(chain.chunk, chain.to_array, chain.to_bytes, (recorder,)), recorder


def lands_in(memory: memoryview, out: np.ndarray) -> bool:
    return np.shares_memory(np.frombuffer(memory, np.uint8), out)


def scratch_memory(size: int) -> memoryview:
    """This thread's scratch memory, as long as `size`."""
    chain = bind_chain(parse_codec_list("zarr3", ["bytes", "zstd"]), chunk_type((size,), "uint8"))
    return chain.decode_scratch(chain.encode(np.zeros(size, "u1"))).data


class TestBindingOnce:
    """Arrays whose chunks are alike share what is bound."""

    CODECS: ClassVar[list] = ["bytes", {"name": "gzip", "configuration": {"level": 1}}]

    def bound(self, codecs: list = CODECS, **chunk: object) -> CodecChain:
        wanted = chunk_type((4, 6), "uint16")
        return bind_chain(parse_codec_list("zarr3", codecs), replace(wanted, **chunk))  # type: ignore[arg-type]

    def test_the_same_codecs_for_the_same_chunk(self) -> None:
        assert self.bound() is self.bound()
        assert self.bound(codecs=["bytes"]) is not self.bound()

    @pytest.mark.parametrize(
        "chunk",
        [
            {"shape": (6, 4)},
            {"dtype": np.dtype("int16"), "fill_value": np.zeros((), "int16")},
            {"fill_value": np.ones((), "uint16")},
            {"fill_value": np.zeros(6, "uint16")},
        ],
        ids=str,
    )
    def test_of_another_chunk_it_is_another(self, chunk: dict) -> None:
        assert self.bound(**chunk) is not self.bound()
        assert self.bound(**chunk).chunk.shape == chunk.get("shape", (4, 6))

    def test_zeros_of_either_sign_are_two(self) -> None:
        zeros = [np.array(zero, "float32") for zero in (0.0, -0.0)]
        chains = [self.bound(dtype=zero.dtype, fill_value=zero) for zero in zeros]
        assert [np.signbit(chain.chunk.fill_value) for chain in chains] == [False, True]

    def test_what_is_wrong_is_wrong_each_time(self) -> None:
        for _ in range(2):
            with pytest.raises(SpecError, match=r"codecs\[1\].*takes an array"):
                self.bound(codecs=["bytes", TURN])

    def test_objects_are_bound_each_time(self) -> None:
        fills = [np.array(text, object) for text in ("a", "b")]
        chains = [
            self.bound(codecs=["vlen-utf8"], dtype=np.dtype(object), fill_value=fill)
            for fill in fills
        ]
        assert [chain.chunk.fill_value.item() for chain in chains] == ["a", "b"]


class TestChain:
    @pytest.mark.parametrize(
        ("codecs", "order", "direct"),
        [
            ([], "C", True),
            ([], "F", False),
            ([TURN], "F", True),
            ([TURN], "C", False),
            ([BIG], "C", False),
        ],
    )
    def test_a_destination_of_the_stored_layout_is_decompressed_into(
        self, codecs: list, order, direct: bool
    ) -> None:
        chain, recorder = recorded(codecs)
        array = sample(CHUNK)
        out = np.zeros((4, 6), "uint16", order=order)

        chain.decode_into(chain.encode(array), out)

        assert_same_bits(array, out)
        assert [lands_in(memory, out) for memory in recorder.outs] == [direct]

    def test_other_destinations_get_a_copy_from_scratch_memory(self) -> None:
        chain, recorder = recorded([])
        array = sample(CHUNK)

        for out in layouts(np.zeros((4, 6), "uint16")):
            chain.decode_into(chain.encode(array), out)
            assert_same_bits(array, out)

        mine = scratch_memory(CHUNK.size_bytes)
        shared = [np.shares_memory(np.frombuffer(memory, "u1"), mine) for memory in recorder.outs]
        assert shared == [False, True, True, True]

    @pytest.mark.parametrize(
        ("codecs", "in_place"),
        [
            (["bytes"], False),
            (["bytes", "zstd"], True),
            (["bytes", "blosc"], True),
            (["bytes", "zstd", "crc32c", "gzip"], True),
            ([BIG, "zstd"], False),
            ([TURN, "bytes", "zstd"], False),
        ],
    )
    def test_what_decodes_in_place_fills_any_memory_of_its_size(
        self, codecs: list, in_place: bool
    ) -> None:
        chain = bind_chain(parse_codec_list("zarr3", codecs), CHUNK)
        array = sample(CHUNK)
        data = chain.encode(array)

        assert chain.decodes_in_place() == in_place
        if in_place:
            around = bytearray(b"x" * (CHUNK.size_bytes + 4))
            chain.decode_to(data, memoryview(around)[2:-2])
            assert_same_bits(array, np.frombuffer(around[2:-2], "uint16").reshape(4, 6))
            assert bytes(around[:2] + around[-2:]) == b"xxxx"

    @pytest.mark.parametrize(
        "codecs", [["zstd"], ["gzip"], ["blosc"], ["crc32c"], ["zstd", "gzip"]]
    )
    def test_in_place_nothing_goes_through_scratch_memory(self, codecs: list) -> None:
        chain = bind_chain(parse_codec_list("zarr3", codecs), CHUNK)
        array = sample(CHUNK)
        stored = chain.encode(array)
        # A caller may have put the stored bytes there.
        data = scratch_memory(memoryview(stored).nbytes)
        data[:] = memoryview(stored).cast("B")
        memory = bytearray(CHUNK.size_bytes)

        chain.decode_to(data, memoryview(memory))

        assert_same_bits(array, np.frombuffer(memory, "uint16").reshape(4, 6))
        assert bytes(data) == bytes(stored)

    @pytest.mark.parametrize("dtype", ["bool", "int4", "object"])
    def test_elements_that_are_checked_or_packed_are_not_decoded_in_place(self, dtype: str) -> None:
        if dtype == "object":
            codecs = ["vlen-utf8", "zstd"]
        elif dtype == "int4":
            codecs = ["packbits", "zstd"]
        else:
            codecs = ["bytes", "zstd"]
        chain = bind_chain(parse_codec_list("zarr3", codecs), chunk_type((4, 6), dtype))

        assert not chain.decodes_in_place()

    def test_scratch_arrays_live_in_this_thread_s_memory(self) -> None:
        chain, _ = recorded([])
        array = sample(CHUNK)

        decoded = chain.decode_scratch(chain.encode(array))

        assert_same_bits(array, decoded)
        assert np.shares_memory(decoded, np.frombuffer(scratch_memory(CHUNK.size_bytes), np.uint8))
        assert not np.shares_memory(decoded, chain.decode(chain.encode(array)))

    def test_without_compressors_decoding_is_a_view(self) -> None:
        chain = bind_chain(parse_codec_list("zarr3", [TURN]), CHUNK)
        data = bytes(chain.encode(sample(CHUNK)))

        assert np.shares_memory(chain.decode(data), np.frombuffer(data, np.uint8))

    def test_all_compressors_run_in_reverse(self) -> None:
        chain = bind_chain(parse_codec_list("zarr3", [TURN, "zstd", "crc32c", "gzip"]), CHUNK)
        array = sample(CHUNK)
        data = chain.encode(array)
        out = np.zeros_like(array)

        chain.decode_into(data, out)

        assert_same_bits(array, out)
        assert_same_bits(array, chain.decode(data))
        assert_same_bits(array, chain.decode_scratch(data))

    @pytest.mark.parametrize("codecs", [[], ["gzip"], ["crc32c"], ["zstd", "gzip"]])
    def test_a_chunk_of_the_wrong_size_is_data_loss(self, codecs: list) -> None:
        chain = bind_chain(parse_codec_list("zarr3", codecs), CHUNK)
        small = bind_chain(parse_codec_list("zarr3", codecs), chunk_type((3, 6), "uint16"))
        data = bytes(small.encode(sample(small.chunk)))

        for decode in (
            chain.decode,
            chain.decode_scratch,
            lambda data: chain.decode_into(data, np.zeros((4, 6), "uint16")),
        ):
            with pytest.raises(DataLossError):
                decode(data)

    @pytest.mark.parametrize("codecs", [["gzip"], ["crc32c"], ["blosc"], ["zstd", "gzip"]])
    @pytest.mark.parametrize("rows", [3, 5])
    def test_in_place_too(self, codecs: list, rows: int) -> None:
        chain = bind_chain(parse_codec_list("zarr3", codecs), CHUNK)
        other = bind_chain(parse_codec_list("zarr3", codecs), chunk_type((rows, 6), "uint16"))

        with pytest.raises(DataLossError):
            chain.decode_to(other.encode(sample(other.chunk)), memoryview(bytearray(48)))

    def test_every_compressor_gets_a_limit_on_what_it_may_unpack(self) -> None:
        chain = bind_chain(parse_codec_list("zarr3", ["crc32c", "gzip", "zstd"]), CHUNK)
        size = CHUNK.size_bytes
        bomb = chain.compressors[1].encode(bytes(1 << 20))

        assert chain.sizes == (size, size + 4, None)
        for decode in (chain.decode, chain.decode_scratch):
            with pytest.raises(DataLossError, match=f"more than {size + 4} bytes"):
                decode(chain.compressors[2].encode(bomb))

    def test_what_has_no_fixed_size_has_a_limit_all_the_same(self) -> None:
        chain = bind_chain(parse_codec_list("zarr3", ["bytes", "gzip", "crc32c", "zstd"]), CHUNK)

        assert chain.sizes == (48, None, None)
        assert chain.limits == (48, 2 * 48 + 65536, 2 * (2 * 48 + 65536) + 65536)
        assert chain.most_bytes() == 2 * (2 * (2 * 48 + 65536) + 65536) + 65536
        assert bind_chain(parse_codec_list("zarr3", ["bytes", "crc32c"]), CHUNK).most_bytes() == 52

    def test_shards_are_limited_by_what_is_in_them(self) -> None:
        shards = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 3]}}
        chain = bind_chain(parse_codec_list("zarr3", [shards, "gzip"]), CHUNK)

        assert chain.sizes == (None,)
        assert chain.limits == (4 * 16 + 4 + 2 * 4 * 12 + 65536,)

    def test_a_limit_is_passed_where_no_size_is_known(self) -> None:
        told: list[object] = []

        class Told(Recorder):
            def decode(self, data, size=None):
                told.append(size)
                return bytes(data)

            def decode_within(self, data, most):
                told.append((most,))
                return bytes(data)

        chain = bind_chain((), CHUNK)
        chain = CodecChain(chain.chunk, chain.to_array, chain.to_bytes, (Told(), Told(), Told()))
        array = sample(CHUNK)

        assert_same_bits(array, chain.decode(chain.encode(array)))
        assert told == [(2 * (2 * 48 + 65536) + 65536,), (2 * 48 + 65536,), 48]

    @pytest.mark.parametrize(
        ("shape", "codecs", "light"),
        [
            ((256, 250), ["bytes"], True),
            ((256, 250), [TURN, BIG, "crc32c"], True),
            ((256, 257), ["bytes"], False),
            ((4, 6), ["bytes", "zstd"], False),
            ((4, 6), ["bytes", "crc32c", "gzip"], False),
        ],
    )
    def test_what_is_little_more_than_copied_is_light(self, shape, codecs, light):
        chunk = chunk_type(shape, "uint16")

        assert bind_chain(parse_codec_list("zarr3", codecs), chunk).is_light is light


WHOLE_CHUNK = chunk_type((2, 3), "uint16")


SEEN: list[ChunkType] = []


class Nothing(BytesToBytes):
    def encode(self, data):
        return data

    def decode(self, data, size=None):
        return data


class NothingSpec(BytesToBytesSpec):
    codec_id = "nothing"

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        SEEN.append(chunk)
        return Nothing()


SHARD = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 3]}}


def merged(one: list, two: list) -> list:
    result = merge_chains(parse_codec_list("zarr3", one), parse_codec_list("zarr3", two))
    return codecs_to_json("zarr3", result)


class TestList:
    @pytest.mark.parametrize(
        ("family", "given", "printed"),
        [
            ("zarr3", "gzip", {"name": "gzip"}),
            ("zarr3", {"name": "gzip", "configuration": {}}, {"name": "gzip"}),
            (
                "zarr3",
                {"name": "gzip", "configuration": {"level": 6}},
                {"name": "gzip", "configuration": {"level": 6}},
            ),
            ("zarr3", {"name": "gzip", "configuration": {"level": 6.0}}, None),
            ("zarr", {"id": "gzip"}, {"id": "gzip", "level": 1}),
            ("zarr", {"id": "gzip", "level": 6}, {"id": "gzip", "level": 6}),
            ("n5", {"type": "gzip", "level": 6}, {"type": "gzip", "level": 6, "useZlib": False}),
        ],
    )
    def test_each_family_has_its_form(
        self, family: str, given: object, printed: dict | None
    ) -> None:
        written = codec_to_json(family, parse_codec_json(family, given))

        assert written == (printed or {"name": "gzip", "configuration": {"level": 6}})
        assert list(written) == sorted(written)

    def test_a_parsed_codec_passes(self) -> None:
        codec = parse_codec_json("zarr3", "gzip")

        assert parse_codec_json("zarr3", codec) is codec
        assert parse_codec_list("zarr3", [codec, "crc32c"])[0] is codec

    def test_lists_keep_their_order(self) -> None:
        names = ["transpose", "bytes", "crc32c", "gzip"]
        given = [{"name": "transpose", "configuration": {"order": "C"}}, *names[1:]]

        assert [
            json["name"] for json in codecs_to_json("zarr3", parse_codec_list("zarr3", given))
        ] == (names)

    @pytest.mark.parametrize(
        ("family", "json", "message"),
        [
            ("zarr3", "gzipp", 'name: .*"gzip"'),
            ("zarr3", "zlib", 'name: no zarr3 codec is named "zlib"'),
            ("zarr3", {}, "name: .*required"),
            ("zarr3", {"name": 3}, "name: .*found 3"),
            ("zarr3", 3, "expected a codec, .*found 3"),
            ("zarr3", None, "expected a codec, .*found null"),
            ("zarr3", {"name": "gzip", "config": {}}, 'config: .*did you mean "configuration"'),
            ("zarr3", {"name": "gzip", "configuration": 3}, "configuration: .*object"),
            (
                "zarr3",
                {"name": "gzip", "configuration": {"levle": 3}},
                r'configuration\.levle: .*"level"',
            ),
            (
                "zarr3",
                {"name": "gzip", "configuration": {"level": None}},
                r"configuration\.level: null",
            ),
            ("zarr", "zlib", "expected a codec, "),
            ("zarr", {"name": "zlib"}, "id: .*required"),
            ("zarr", {"id": "zlip"}, 'id: .*"zlib"'),
            ("zarr", {"id": "zlib", "level": 99}, "level: .*99"),
        ],
    )
    def test_errors_name_the_member(self, family: str, json: object, message: str) -> None:
        with pytest.raises(SpecError, match=f"^{message}"):
            parse_codec_json(family, json)

    def test_errors_in_a_list_name_the_position(self) -> None:
        with pytest.raises(SpecError, match=r"^\[1\]\.name: "):
            parse_codec_list("zarr3", ["bytes", "nothing"])
        with pytest.raises(SpecError, match='array of codecs, but found "bytes"'):
            parse_codec_list("zarr3", "bytes")

    def test_null_is_possible_only_where_a_codec_says_so(self) -> None:
        spec = parse_codec_json("zarr", {"id": "lzma", "preset": None, "filters": None})

        assert spec == parse_codec_json("zarr", {"id": "lzma"})
        with pytest.raises(SpecError, match=r"^check: null is not possible"):
            parse_codec_json("zarr", {"id": "lzma", "check": None})

    def test_stages_are_distinguished_by_what_goes_in_and_out(self) -> None:
        specs = parse_codec_list("zarr3", [TURN, TURN, "bytes", "gzip", "crc32c"])

        stages = split_chain(specs)

        assert stages.to_array == specs[:2]
        assert stages.to_bytes is specs[2]
        assert stages.compressors == specs[3:]

    @pytest.mark.parametrize(
        ("codecs", "position"),
        [
            (["bytes", "bytes"], 1),
            (["gzip", "bytes"], 1),
            (["bytes", TURN], 1),
            ([TURN, "bytes", "gzip", TURN], 3),
            (["bytes", "sharding_indexed"], 1),
        ],
    )
    def test_a_misplaced_codec_is_named_by_position(self, codecs: list, position: int) -> None:
        specs = parse_codec_list("zarr3", codecs)

        for run in (bind_chain, resolve_chain):
            with pytest.raises(SpecError, match="takes an array") as caught:
                run(specs, WHOLE_CHUNK)
            assert caught.value.path == ("codecs", position)
        with pytest.raises(SpecError, match=rf"^index_codecs\[{position}\]: "):
            bind_chain(specs, WHOLE_CHUNK, member="index_codecs")

    @pytest.mark.parametrize("codecs", [[], [TURN], ["gzip"], [TURN, "gzip", "crc32c"]])
    def test_bytes_is_put_in_where_nothing_serializes(self, codecs: list) -> None:
        resolved = resolve_chain(parse_codec_list("zarr3", codecs), WHOLE_CHUNK)

        names = [json["name"] for json in codecs_to_json("zarr3", resolved)]
        assert names.count("bytes") == 1
        assert len(names) == len(codecs) + 1
        assert (
            bind_chain(parse_codec_list("zarr3", codecs), WHOLE_CHUNK).to_bytes.encoded_size == 12
        )

    def test_a_chain_knows_its_chunk_and_size(self) -> None:
        chain = bind_chain(parse_codec_list("zarr3", [TURN, "crc32c", "crc32c"]), WHOLE_CHUNK)

        assert chain.chunk is WHOLE_CHUNK
        assert chain.encoded_size() == 20
        assert (
            bind_chain(parse_codec_list("zarr3", ["crc32c", "gzip"]), WHOLE_CHUNK).encoded_size()
            is None
        )

    @pytest.mark.parametrize(
        ("codecs", "opaque"), [([TURN], False), (["gzip"], True), (["sharding_indexed"], True)]
    )
    def test_only_the_first_compressor_behind_plain_elements_sees_them(
        self, codecs: list, opaque: bool
    ) -> None:
        SEEN.clear()

        bind_chain([*parse_codec_list("zarr3", codecs), NothingSpec(), NothingSpec()], WHOLE_CHUNK)

        assert (SEEN[0] is OPAQUE) is opaque
        assert SEEN[1] is OPAQUE
        if not opaque:
            assert SEEN[0].shape == (3, 2)

    def test_errors_of_binding_name_codec_and_member(self) -> None:
        wrong = {"name": "transpose", "configuration": {"order": [1, 0, 2]}}

        for run in (bind_chain, resolve_chain):
            with pytest.raises(SpecError) as caught:
                run(parse_codec_list("zarr3", [TURN, wrong]), WHOLE_CHUNK)
            assert caught.value.path == ("codecs", 1, "configuration", "order")

    def test_compressors_may_follow_a_sharding_codec(self) -> None:
        chain = bind_chain(parse_codec_list("zarr3", ["sharding_indexed", "gzip"]), WHOLE_CHUNK)
        array = np.arange(6, dtype="uint16").reshape(2, 3)
        out = np.zeros_like(array)

        chain.decode_into(chain.encode(array), out)

        assert (out == array).all()

    @pytest.mark.parametrize(("missing", "name"), [("", "vlen-utf8"), (b"", "vlen-bytes")])
    def test_objects_get_the_serializer_of_their_type(self, missing: object, name: str) -> None:
        fill_value = np.empty((), object)
        fill_value[...] = missing
        chunk = ChunkType((2,), np.dtype(object), fill_value)

        codecs = resolve_chain(parse_codec_list("zarr3", ["gzip"]), chunk)

        assert [codec.codec_id for codec in codecs] == [name, "gzip"]
        fill_value[...] = None
        with pytest.raises(
            SpecError, match=r'^codecs\[0\]: codec "bytes" stores elements of fixed'
        ):
            bind_chain((), chunk)

    def test_what_one_list_leaves_open_the_other_states(self) -> None:
        assert merged(
            [TURN, "gzip"], ["bytes", {"name": "gzip", "configuration": {"level": 2}}]
        ) == [
            TURN,
            {"name": "bytes"},
            {"name": "gzip", "configuration": {"level": 2}},
        ]

    def test_a_list_that_does_not_shard_is_about_the_inner_chunks(self) -> None:
        inside = {"chunk_shape": [2, 3], "codecs": [{"name": "gzip"}]}

        assert merged([SHARD], ["gzip"]) == [{"name": "sharding_indexed", "configuration": inside}]
        assert merged(["gzip"], [SHARD]) == merged([SHARD], ["gzip"])

    @pytest.mark.parametrize(
        ("one", "two", "message"),
        [
            (["gzip"], ["zstd"], 'codec "gzip" and codec "zstd"'),
            (["gzip"], ["numcodecs.gzip"], 'codec "gzip" and codec "numcodecs.gzip"'),
            (["gzip"], ["gzip", "crc32c"], r"1 bytes to bytes codecs \(gzip\), the other 2"),
            (["bytes"], ["gzip"], r"0 bytes to bytes codecs \(none\), the other 1"),
            (
                [{"name": "gzip", "configuration": {"level": 1}}],
                [{"name": "gzip", "configuration": {"level": 2}}],
                'codec "gzip": "level" is both 1 and 2',
            ),
        ],
    )
    def test_contradictions_are_named(self, one: list, two: list, message: str) -> None:
        with pytest.raises(MismatchError, match=message):
            merged(one, two)

    def test_missing_is_the_largest_offset(self) -> None:
        assert Sharded.index_type((2, 3)).fill_value == 0xFFFF_FFFF_FFFF_FFFF

    def test_inner_chunks_have_at_least_one_element(self) -> None:
        assert ShardedSpec.parse({"chunk_shape": [2, 3]}).chunk_shape == (2, 3)
        assert ShardedSpec.parse({}).chunk_shape is None
        with pytest.raises(SpecError, match=r"^chunk_shape\[1\]"):
            ShardedSpec.parse({"chunk_shape": [2, 0]})


PAIR = StoredType.parse([["x", "<u2", [2]], ["y", ">f4"], ["b", "|b1"]])


RECORD = np.dtype([("x", "<u2", (2,)), ("y", ">f4"), ("b", "|b1")])


CHUNKS = (2, 3)


BLANK = np.array(([1, 2], 3.0, True), RECORD).tobytes()


def records() -> np.ndarray:
    chunk = np.zeros(CHUNKS, RECORD)
    chunk["x"] = np.arange(12).reshape(2, 3, 2)
    chunk["y"] = np.arange(6).reshape(2, 3) / 2
    chunk["b"] = [[True, False, True], [False, False, True]]
    return chunk


def field_bytes(name: str, order: str = "C") -> FieldBytes:
    return FieldBytes(PAIR.view(name), CHUNKS, order, BLANK)


NESTED = [["p", [["a", "|i1"], ["b", ">u2", [3]]], [2]], ["q", "|b1"]]


VIEWED = np.dtype([("p", [("a", "i1"), ("b", ">u2", (3,))], (2,)), ("q", "?")])


def elements() -> np.ndarray:
    array = np.zeros((2, 3), VIEWED)
    array["p"]["a"] = np.arange(12).reshape(2, 3, 2)
    array["p"]["b"] = np.arange(36).reshape(2, 3, 2, 3)
    return array


class TestFieldBytes:
    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("name", ["x", "y", "b"])
    def test_a_field_is_a_view_of_the_records(self, name: str, order: Literal["C", "F"]) -> None:
        chunk = records()

        found = field_bytes(name, order).decode(chunk.tobytes(order))

        assert np.array_equal(found, chunk[name])

    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("name", ["x", "y", "b"])
    def test_writing_a_field_leaves_the_others_alone(
        self, name: str, order: Literal["C", "F"]
    ) -> None:
        chunk = records()
        codec = field_bytes(name, order)
        changed = chunk.copy()
        changed[name] = chunk[name][::-1]

        data = codec.encode_over(changed[name], chunk.tobytes(order), keep_fill=False)

        assert bytes(data or b"") == changed.tobytes(order)

    def test_without_anything_stored_the_others_are_filled(self) -> None:
        chunk = np.full(CHUNKS, np.frombuffer(BLANK, RECORD)[0])
        chunk["y"] = 7

        codec = field_bytes("y")

        assert bytes(codec.encode(chunk["y"])) == chunk.tobytes()
        assert codec.encode_over(chunk["y"], None, keep_fill=False) == chunk.tobytes()

    def test_a_chunk_of_fill_values_need_not_be_stored(self) -> None:
        codec = field_bytes("y")
        fill = np.full(CHUNKS, 3.0, "f4")

        assert codec.encode_over(fill, None, keep_fill=False) is None
        assert codec.encode_over(fill, None, keep_fill=True) == BLANK * 6
        assert codec.encode_over(fill, records().tobytes(), keep_fill=False) is not None

    def test_stored_truth_values_of_any_bits_are_true(self) -> None:
        data = bytearray(records().tobytes())
        data[PAIR.view("b").offset] = 2

        found = field_bytes("b").decode(data)

        assert found.view(np.uint8)[0, 0] == 1

    def test_a_chunk_of_the_wrong_size_is_corrupt(self) -> None:
        data = records().tobytes()[:-1]
        codec = field_bytes("y")

        with pytest.raises(DataLossError, match="decoded to 53 bytes, expected 54"):
            codec.decode(data)
        with pytest.raises(DataLossError, match="expected 54"):
            codec.encode_over(np.zeros(CHUNKS, "f4"), data, keep_fill=False)

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_all_fields_together_are_records(self, order: Literal["C", "F"]) -> None:
        chunk = records()
        codec = FieldBytes(PAIR.view(), CHUNKS, order, BLANK)
        native = chunk.astype(PAIR.view().native)

        assert bytes(codec.encode(native)) == chunk.tobytes(order)
        assert np.array_equal(codec.decode(chunk.tobytes(order)), native)
        assert not codec.partial
        out = np.zeros(CHUNKS, native.dtype)
        codec.decode_into(chunk.tobytes(order), out)
        assert np.array_equal(out, native)

    def test_truth_values_of_any_bits_are_true_in_records_too(self) -> None:
        data = bytearray(records().tobytes())
        data[PAIR.view("b").offset] = 2

        found = FieldBytes(PAIR.view(), CHUNKS, "C", BLANK).decode(data)

        assert found["b"].view(np.uint8)[0, 0] == 1  # type: ignore[call-overload]

    def test_text_that_no_unicode_has_is_corrupt(self) -> None:
        text = StoredType.parse([["x", "<u2"], ["t", ">U2"]])
        data = bytearray(10 * 6)
        data[12:16] = b"\0\x11\0\0"

        for name in (None, "t"):
            codec = FieldBytes(text.view(name), CHUNKS, "C", bytes(10))
            with pytest.raises(DataLossError, match="a stored character is 0x110000"):
                codec.decode(data)
        FieldBytes(text.view("x"), CHUNKS, "C", bytes(10)).decode(data)

    def test_records_that_are_stored_as_in_memory_are_decoded_in_place(self) -> None:
        plain = StoredType.parse([["x", "<u2"], ["y", "<f4"]])
        out = np.zeros(CHUNKS, plain.view().native)

        assert FieldBytes(plain.view(), CHUNKS, "C", bytes(6)).direct(out) is not None
        assert FieldBytes(plain.view(), CHUNKS, "F", bytes(6)).direct(out) is None
        assert FieldBytes(plain.view(), CHUNKS, "C", bytes(6)).direct(out.T) is None
        assert FieldBytes(PAIR.view(), CHUNKS, "C", BLANK).direct(records()) is None

    def test_a_view_inside_a_view_is_where_numpy_finds_it(self) -> None:
        array = elements()
        view = StoredType.parse(NESTED).view("p.b")

        found = view.of(array.tobytes(), array.shape, array.strides)

        assert np.array_equal(found, array["p"]["b"])
        assert (view.inner_shape, view.inner_strides, view.offset) == ((2, 3), (7, 2), 1)
        assert view.size_bytes == 12

    def test_a_view_is_writable_if_the_bytes_are(self) -> None:
        data = bytearray(8)

        ElementView("", dtype("uint16"), np.dtype(">u2")).of(data, (4,), (2,))[...] = 1

        assert data == b"\0\1" * 4

    def test_elements_come_in_native_byte_order_without_a_copy_if_they_are(self) -> None:
        native = np.arange(3, dtype="<u2")

        assert normalised(native, np.dtype("<u2")) is native
        assert normalised(native.astype(">u2"), np.dtype("<u2")).dtype.isnative

    def test_truth_values_of_any_bits_are_true(self) -> None:
        data = np.array([0, 1, 2, 255], "u1")
        record = np.dtype([("n", "u1"), ("deep", [("ok", "?", (2,))])])
        records = np.array([7, 2, 0, 8, 0, 255], "u1").view(record)

        assert normalised(data.view("?"), np.dtype("?")).view("u1").tolist() == [0, 1, 1, 1]
        found = normalised(records, record)
        assert found.view("u1").tolist() == [7, 1, 0, 8, 0, 1]
        assert records.view("u1").tolist() == [7, 2, 0, 8, 0, 255]

    def test_truth_values_and_text_are_found_at_any_depth(self) -> None:
        def is_copied(dtype: np.dtype) -> bool:
            array = np.zeros(2, dtype)
            return not np.shares_memory(normalised(array, dtype), array)

        assert is_copied(np.dtype([("a", [("b", "?", (2,))])]))
        assert is_copied(np.dtype("?"))
        assert is_copied(np.dtype([("a", "u1"), ("b", "U4")]))
        assert not is_copied(np.dtype([("a", "u1"), ("b", "S4")]))


ONE = zlib.compress(b"abc" * 100)


TWO = zlib.compress(b"def" * 100)


def decode(data: bytes, size: int | None = None, concatenated: bool = True) -> bytes:
    return decode_streams(data, size, zlib.decompressobj, unlimited=0, concatenated=concatenated)


class TestStreams:
    @pytest.mark.parametrize("size", [300, None])
    def test_one_stream_is_decoded(self, size: int | None) -> None:
        assert decode(ONE, size) == b"abc" * 100
        assert decode(ONE, size, concatenated=False) == b"abc" * 100

    @pytest.mark.parametrize("size", [600, None])
    def test_streams_one_behind_the_other_are_joined_where_the_format_does(
        self, size: int | None
    ) -> None:
        assert decode(ONE + TWO, size) == b"abc" * 100 + b"def" * 100
        with pytest.raises(DataLossError):
            decode(ONE + TWO, size, concatenated=False)

    def test_a_stream_without_its_end_is_data_loss(self) -> None:
        for length in range(len(ONE)):
            with pytest.raises(DataLossError, match="truncated after"):
                decode(ONE[:length])

    def test_sizes_must_agree(self) -> None:
        with pytest.raises(DataLossError, match="decoded to 300 bytes, expected 301"):
            decode(ONE, 301)
        with pytest.raises(DataLossError, match="more than 299 bytes"):
            decode(ONE, 299)
        with pytest.raises(DataLossError, match="more than 0 bytes"):
            decode(ONE, 0)

    def test_an_empty_stream_decodes_to_nothing(self) -> None:
        assert decode(zlib.compress(b""), 0) == b""

    def test_no_more_is_decoded_than_expected(self) -> None:
        asked: list[int] = []

        class Spy:
            def __init__(self) -> None:
                self.inner = zlib.decompressobj()

            @property
            def eof(self) -> bool:
                return self.inner.eof

            @property
            def unused_data(self) -> bytes:
                return self.inner.unused_data

            def decompress(self, data, max_length: int, /) -> bytes:
                asked.append(max_length)
                return self.inner.decompress(data, max_length)

        bomb = zlib.compress(bytes(10**6))

        with pytest.raises(DataLossError):
            decode_streams(bomb, 10, Spy, unlimited=0, concatenated=True)

        assert asked == [11]

    @pytest.mark.parametrize("most", [3, 10])
    def test_a_size_that_is_not_known_may_have_a_limit(self, most: int) -> None:
        def within(data: bytes) -> bytes:
            return decode_streams(
                data, None, zlib.decompressobj, unlimited=0, concatenated=True, most=most
            )

        assert within(zlib.compress(b"a" * most)) == b"a" * most
        assert within(zlib.compress(b"a") + zlib.compress(b"a" * (most - 1))) == b"a" * most
        for bomb in (
            zlib.compress(bytes(most + 1)),
            zlib.compress(b"a") + zlib.compress(bytes(most)),
        ):
            with pytest.raises(DataLossError, match=f"decoded to more than {most} bytes"):
                within(bomb)

    def test_a_codec_of_streams(self) -> None:
        codec = StreamCodec(
            "zlib", zlib.compress, zlib.decompressobj, (zlib.error,), concatenated=False
        )
        assert codec.decode(codec.encode(b"abc"), 3) == b"abc"
        assert codec.decode_within(ONE, 300) == b"abc" * 100
        for data in (ONE[:-1], ONE + TWO):
            with pytest.raises(DataLossError):
                codec.decode(data)
        with pytest.raises(DataLossError, match="corrupt zlib data"):
            codec.decode(b"\0" * 10)
        with pytest.raises(DataLossError, match="more than 299"):
            codec.decode_within(ONE, 299)
