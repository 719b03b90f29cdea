from tensorstore_py._conversion.migration import Migration, MigrationStep

STEPS = (
    MigrationStep("", "group", 2, "metadata"),
    MigrationStep("a", "array", 3, "nothing"),
    MigrationStep("b", "array", 2, "impossible", "no words"),
    MigrationStep("c", "array", 2, "finish"),
)


def test_is_a_text_to_read():
    assert str(Migration(3, "file:///a/", True, STEPS)).split("\n") == [
        "would migrate file:///a/ to version 3: 2 of 4 nodes",
        "  group /: version 2, new metadata, chunks stay",
        "  array /a: version 3, nothing to do",
        "  array /b: version 2, cannot be migrated: no words",
        "  array /c: version 2, was begun: old metadata goes",
    ]


def test_counts():
    migration = Migration(3, "x", False, STEPS, "y")

    assert migration.changes == 2
    assert migration.impossible == STEPS[2:3]
    assert str(migration).startswith("migrated x to version 3 at y")
