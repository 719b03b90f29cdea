"""What workers run; pieces on engines are in test_running."""

import json
import pickle

import tensorstore_py as ts
from tensorstore_py._plan.pieces import Joining, Piece, shared_context
from tests.plan.trees import SMALL, check, tree


def planned(tmp_path):
    tree(tmp_path / "old")
    return ts.plan(
        ts.copy, tmp_path / "old", tmp_path / "new", chunks=3, context=ts.Context(SMALL)
    ).result()


def test_a_piece_knows_only_its_steps(tmp_path):
    (stage,) = planned(tmp_path).stages
    assert stage.steps[0].blocks.count == 1

    piece = Piece.of(stage, 1, 3)

    assert [step.name for step in piece.stage.steps] == ["raw/image"]
    assert (piece.first, piece.start, piece.stop) == (1, 0, 2)


def test_pieces_in_any_order_any_number_of_times(tmp_path):
    plan = planned(tmp_path)
    plan.run().result()
    (stage,) = plan.stages
    pieces = [Piece.of(stage, at, min(at + 3, stage.count)) for at in range(0, stage.count, 3)]

    outcomes = [pickle.loads(pickle.dumps(piece)).run() for piece in [*pieces[::-1], pieces[0]]]

    assert [each.damaged for each in outcomes] == [[]] * len(outcomes)
    assert set(outcomes[-1].steps) == {0, 1}
    check(tmp_path / "new")


def test_a_worker_needs_only_the_place_of_the_plan(tmp_path):
    where = tmp_path / "plan.json"
    where.write_text(json.dumps(planned(tmp_path).to_json()))
    joining = Joining({"driver": "file", "path": str(where)}, 0, 0, 1, None)

    outcome = pickle.loads(pickle.dumps(joining)).run()
    again = joining.run()

    assert sum(done.bytes for done in outcome.steps.values()) == 342
    assert again.steps == {}
    check(tmp_path / "new")


def test_pieces_of_a_process_share_a_context():
    assert shared_context() is shared_context()
