"""A session in this process: what it saves, when, and that a resume is exact."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stoker
import torch
from stoker.session.progress import Progress
from support.trainee import BATCH, SAMPLES, Points, Run, Stream
from torch import nn
from torch.utils.data import DataLoader

PER_EPOCH = SAMPLES // BATCH


class Cut(Exception):
    """Stands for whatever ends a process."""


def cut_at(step: int) -> Any:
    def after_step(done: int) -> None:
        if done == step:
            raise Cut

    return after_step


def straight(directory: Path, kind: str = "torch", workers: int = 0, epochs: int = 3) -> Run:
    run = Run(kind, workers)
    with run.session(directory) as session:
        run.train(session, epochs)
    return run


def cut_and_resumed(
    directory: Path, *cuts: int, kind: str = "torch", workers: int = 0, epochs: int = 3
) -> Run:
    losses: dict[int, str] = {}
    for cut in cuts:
        run = Run(kind, workers)
        with pytest.raises(Cut), run.session(directory, every=1) as session:
            run.train(session, epochs, cut_at(cut))
        losses.update(run.losses)
    run = Run(kind, workers)
    torch.rand(5)  # a resumed process need not have the same random state
    with run.session(directory, every=1) as session:
        run.train(session, epochs)
    run.losses = {**losses, **run.losses}
    return run


@pytest.mark.parametrize(
    ("kind", "workers"),
    [("images", 0), ("accelerated", 0), ("torch", 0), ("torch", 2), ("stream", 0)],
    ids=["ImageLoader", "accelerated", "DataLoader", "workers", "iterable"],
)
def test_a_resumed_run_equals_one_that_was_never_cut(tmp_path: Path, kind: str, workers: int) -> None:
    whole = straight(tmp_path / "whole", kind, workers)
    parts = cut_and_resumed(tmp_path / "parts", 4, 10, 17, kind=kind, workers=workers)
    assert parts.losses == whole.losses
    assert parts.weights() == whole.weights()


def test_c07_twenty_steps_are_ten_and_a_resume_and_ten(tmp_path: Path) -> None:
    whole = straight(tmp_path / "whole")
    parts = cut_and_resumed(tmp_path / "parts", 11)
    assert [parts.losses[s] for s in range(1, 21)] == [whole.losses[s] for s in range(1, 21)]


def test_c08_a_resumed_epoch_sees_each_sample_once_and_so_does_the_next(tmp_path: Path) -> None:
    class Numbers(Points):
        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            return super().__getitem__(index)[0], index

    seen: list[int] = []
    for stop in (5, None):
        run = Run()
        run.loader = DataLoader(Numbers(), batch_size=BATCH, shuffle=True)
        with run.session(tmp_path, every=1) as session:
            for _ in session.epochs(2):
                for x, index in session.batches(run.loader):
                    run.train_batch(x, index % 3)
                    seen += index.tolist()
                    if session.global_step == stop:
                        break
                if stop is not None:
                    break
                session.epoch_end()
    assert sorted(seen[:SAMPLES]) == list(range(SAMPLES))
    assert sorted(seen[SAMPLES:]) == list(range(SAMPLES))
    assert seen[:SAMPLES] != seen[SAMPLES:]


def test_a_session_changes_no_batch_of_a_plain_loop(tmp_path: Path) -> None:
    plain = Run()
    losses = [plain.train_batch(x, y).item().hex() for _ in range(3) for x, y in plain.loader]
    assert list(straight(tmp_path).losses.values()) == losses


def test_a_loader_with_its_own_generator_resumes(tmp_path: Path) -> None:
    def run_until(step: int | None, directory: Path) -> Run:
        run = Run()
        run.loader = DataLoader(
            Points(), batch_size=BATCH, shuffle=True, generator=torch.Generator().manual_seed(1)
        )
        try:
            with run.session(directory, every=1) as session:
                run.train(session, 3, cut_at(step) if step else lambda done: None)
        except Cut:
            pass
        return run

    whole = run_until(None, tmp_path / "whole")
    run_until(13, tmp_path / "parts")
    assert run_until(None, tmp_path / "parts").weights() == whole.weights()


@pytest.mark.parametrize("cut", [PER_EPOCH, 2 * PER_EPOCH])
def test_a_run_cut_after_the_last_batch_of_an_epoch_resumes(tmp_path: Path, cut: int) -> None:
    assert cut_and_resumed(tmp_path / "parts", cut).weights() == straight(tmp_path / "whole").weights()


def test_a_checkpoint_taken_in_the_evaluation_resumes_there(tmp_path: Path) -> None:
    run = Run()

    def cut_in_the_evaluation(session: stoker.Session) -> None:
        for x, y in session.batches(run.loader):
            run.train_batch(x, y)
        raise Cut

    with pytest.raises(Cut), run.session(tmp_path / "parts", every=100) as session:
        cut_in_the_evaluation(session)
    again = Run()
    with again.session(tmp_path / "parts") as session:
        assert (session.epoch, session.global_step) == (0, PER_EPOCH)
        again.train(session, 3)
    assert again.weights() == straight(tmp_path / "whole").weights()


def test_own_backward_and_step_do_the_same(tmp_path: Path) -> None:
    def train(session: stoker.Session, run: Run) -> None:
        for _ in session.epochs(2):
            for x, y in session.batches(run.loader):
                loss = session.backward(lambda x, y: nn.functional.cross_entropy(run.model(x), y), x, y)
                assert not loss.requires_grad
                session.step()
                run.scheduler.step()

    run = Run()
    with run.session(tmp_path / "own") as session:
        train(session, run)
        assert session.global_step == 2 * PER_EPOCH
    assert run.weights() == straight(tmp_path / "plain", epochs=2).weights()


def test_the_scheduler_goes_on_where_it_was(tmp_path: Path) -> None:
    run = Run()
    with run.session(tmp_path) as session:
        run.train(session, 1)
    again = Run()
    with again.session(tmp_path):
        assert again.scheduler.get_last_lr() == run.scheduler.get_last_lr()


@pytest.mark.parametrize(
    "make",
    [
        lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda step: 0.9**step),
        lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [2, 4]),
        lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o),
        lambda o: torch.optim.lr_scheduler.SequentialLR(
            o,
            [
                torch.optim.lr_scheduler.LinearLR(o, total_iters=3),
                torch.optim.lr_scheduler.CosineAnnealingLR(o, 9),
            ],
            milestones=[3],
        ),
    ],
    ids=["lambda", "multistep", "plateau", "sequential"],
)
def test_every_kind_of_scheduler_is_stored(tmp_path: Path, make: Any) -> None:
    def rates(scheduler: Any, run: Run, count: int) -> list[float]:
        out = []
        for _ in range(count):
            run.optimizer.step()
            scheduler.step(*([1.0] if "Plateau" in type(scheduler).__name__ else []))
            out.append(run.optimizer.param_groups[0]["lr"])
        return out

    run = Run()
    scheduler = make(run.optimizer)
    with run.session(tmp_path, scheduler=scheduler) as session:
        rates(scheduler, run, 3)
        session.epoch_end()
    wanted = rates(scheduler, run, 12)
    again = Run()
    resumed = make(again.optimizer)
    with again.session(tmp_path, scheduler=resumed):
        assert rates(resumed, again, 12) == wanted


def test_a_save_that_is_due_within_an_accumulation_waits_for_the_step(tmp_path: Path) -> None:
    def train(directory: Path, stop: int | None) -> Run:
        run = Run()
        batch = 0
        with run.session(directory, every=1) as session:
            for _ in session.epochs(2):
                for x, y in session.batches(run.loader):
                    batch += 1
                    nn.functional.cross_entropy(run.model(x), y).backward()
                    if batch % 2 == 0:
                        run.optimizer.step()
                        run.optimizer.zero_grad()
                    if batch == stop:
                        raise Cut
                session.epoch_end()
        return run

    whole = train(tmp_path / "whole", None)
    with pytest.raises(Cut):
        train(tmp_path / "parts", 5)  # in the middle of the third step
    store = stoker.Store(tmp_path / "parts", read_only=True)
    assert store.latest == 2
    # 9 batches an epoch: the ninth's gradients wait for the next epoch, beyond the checkpoint at the end.
    run = Run()
    with run.session(tmp_path / "parts", every=1) as session:
        batch = 4
        for _ in session.epochs(2):
            for x, y in session.batches(run.loader):
                batch += 1
                nn.functional.cross_entropy(run.model(x), y).backward()
                if batch % 2 == 0:
                    run.optimizer.step()
                    run.optimizer.zero_grad()
            session.epoch_end()
    assert run.weights() == whole.weights()


def test_gradients_left_over_at_the_end_of_an_epoch_are_in_its_checkpoint(tmp_path: Path) -> None:
    run = Run()
    with run.session(tmp_path) as session:
        for x, y in session.batches(run.loader):
            nn.functional.cross_entropy(run.model(x), y).backward()
        session.epoch_end()
    again = Run()
    with again.session(tmp_path):
        for mine, theirs in zip(again.model.parameters(), run.model.parameters(), strict=True):
            assert theirs.grad is not None
            assert mine.grad is not None
            assert torch.equal(mine.grad, theirs.grad)


def test_two_models_and_two_optimizers_are_one_step_a_batch(tmp_path: Path) -> None:
    def make() -> tuple[dict[str, nn.Module], dict[str, torch.optim.Optimizer]]:
        torch.manual_seed(0)
        models: dict[str, nn.Module] = {"g": nn.Linear(8, 8), "d": nn.Linear(8, 1)}
        return models, {name: torch.optim.Adam(model.parameters()) for name, model in models.items()}

    def train(session: stoker.Session, models: Any, optimizers: Any, epochs: int, loader: Any) -> None:
        for _ in session.epochs(epochs):
            for x, _ in session.batches(loader):
                for name in ("d", "g"):
                    models["d"](models["g"](x)).mean().backward()
                    optimizers[name].step()
                    optimizers[name].zero_grad()

    results = []
    for directory, rounds in (("whole", [2]), ("parts", [1, 2])):
        for epochs in rounds:
            models, optimizers = make()
            loader = Run().loader
            with stoker.Session(
                tmp_path / directory, model=models, optimizer=optimizers, loader=loader, quiet=True
            ) as session:
                train(session, models, optimizers, epochs, loader)
                assert session.global_step == epochs * PER_EPOCH
        results.append([p.tolist() for m in models.values() for p in m.parameters()])
    assert results[0] == results[1]


def test_c05_a_compiled_or_wrapped_model_resumes_from_a_plain_ones_checkpoint(tmp_path: Path) -> None:
    class Wrapped(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.module = inner

    run = Run()
    with run.session(tmp_path) as session:
        run.train(session, 1)
    again = Run()
    with again.session(tmp_path, model=Wrapped(again.model)) as session:
        assert again.weights() == run.weights()
        again.train(session, 2)
    last = Run()
    with last.session(tmp_path):
        assert last.weights() == again.weights()


def test_a_checkpoint_of_another_model_is_refused_and_names_the_keys(tmp_path: Path) -> None:
    run = Run()
    with run.session(tmp_path) as session:
        run.train(session, 1)
    other = Run()
    other.model[4] = nn.Linear(16, 5)
    before = other.weights()
    with pytest.raises(stoker.BadInputError, match=r"4\.weight is 5×16 in the model and 3×16"):
        other.session(tmp_path).__enter__()
    assert other.weights() == before
    with Run().session(tmp_path):  # the refusal has let go of the directory
        pass


def test_an_optimizer_with_other_groups_is_refused(tmp_path: Path) -> None:
    run = Run()
    with run.session(tmp_path) as session:
        run.train(session, 1)
    other = Run()
    optimizer = torch.optim.Adam(list(other.model.parameters())[:2])
    with pytest.raises(stoker.BadInputError, match="another optimizer"):
        other.session(tmp_path, optimizer=optimizer).__enter__()


def test_a_second_session_on_the_directory_is_refused_and_names_the_first(tmp_path: Path) -> None:
    with Run().session(tmp_path), pytest.raises(stoker.InUseError, match=str(os.getpid())):
        Run().session(tmp_path).__enter__()


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(stoker.Error, match="file"):
        Run().session(tmp_path / "file" / "run").__enter__()


def test_c02_a_half_written_newest_checkpoint_is_passed_over(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = Run()
    with run.session(tmp_path, every=1) as session:
        run.train(session, 2)
    newest = Path(stoker.Store(tmp_path, read_only=True).list()[-1].path)
    part = next(part for part in newest.glob("*.safetensors") if part.stat().st_nlink == 1)
    part.write_bytes(part.read_bytes()[:-100])
    again = Run()
    with again.session(tmp_path, every=1) as session:
        assert session.global_step < 2 * PER_EPOCH
        again.train(session, 2)
    assert again.weights() == run.weights()
    told = capfd.readouterr().err
    assert "step 18 is damaged, going on from step 17" in told
    assert told.count("its manifest says") == 1  # said once


def test_an_exception_keeps_the_last_boundary_and_stores_an_emergency(tmp_path: Path) -> None:
    run = Run()
    with pytest.raises(Cut), run.session(tmp_path, every=2) as session:
        run.train(session, 1, cut_at(5))
    store = stoker.Store(tmp_path, read_only=True)
    assert store.latest == 4
    emergency = store.load(pin="emergency")
    assert (emergency.step, emergency.info.exact) == (5, False)
    assert torch.equal(emergency["model"]["0.weight"], run.model[0].weight)


def test_nan_is_never_best(tmp_path: Path) -> None:
    run = Run()
    with run.session(tmp_path) as session:
        for value in (0.5, float("nan"), 0.4):
            for x, y in session.batches(run.loader):
                run.train_batch(x, y)
            session.epoch_end(accuracy=value, best="max")
        assert session.best == 0.5
        assert [entry["step"] for entry in session.history] == [PER_EPOCH, 2 * PER_EPOCH, 3 * PER_EPOCH]
    assert stoker.Store(tmp_path, read_only=True).best == PER_EPOCH


def test_lower_is_better_when_told() -> None:
    progress = Progress()
    assert [progress.improves(v, "min") for v in (3.0, 4.0, 2.0, float("inf"))] == [True, False, True, False]


def test_logged_lines_of_steps_that_are_done_again_are_gone(tmp_path: Path) -> None:
    def train(session: stoker.Session, run: Run, stop: int) -> None:
        for x, y in session.batches(run.loader):
            session.log(loss=run.train_batch(x, y).detach())
            if session.global_step == stop:
                raise Cut

    for stop in (5, 8):
        run = Run()
        with pytest.raises(Cut), run.session(tmp_path, every=3) as session:
            train(session, run, stop)
    steps = [json.loads(line)["step"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert steps == list(range(1, 9))


def test_what_is_no_part_of_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(stoker.BadInputError, match="model has no state_dict"):
        stoker.Session(tmp_path, model=3)
    with pytest.raises(stoker.BadInputError, match="at least one step"):
        stoker.Session(tmp_path, every=0)
    with pytest.raises(stoker.BadInputError, match="mirror"):
        stoker.Session(tmp_path, mirror="elsewhere")


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_an_iterable_says_how_long_it_took_to_get_back(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for stop in (4, 6):
        run = Run("stream")
        assert isinstance(run.loader, Stream)
        with pytest.raises(Cut), run.session(tmp_path, every=1, quiet=False) as session:
            run.train(session, 1, cut_at(stop))
    said = capfd.readouterr().err
    assert "read 3 batches of the Stream again" in said
    assert "the resume took load" in said


def test_a_recorded_session_bears_the_recordings_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_RUN", "/somewhere/runs/20260102T030405Z-train-1a2b")
    with Run().session(tmp_path):
        pass
    record = json.loads((tmp_path / "session.json").read_text())
    assert record["sessions"][0]["run_id"] == "20260102T030405Z-train-1a2b"


def test_an_exception_in_the_data_keeps_the_boundary_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch, fetched = Points.__getitem__, [0]

    def broken(self: Points, index: int) -> Any:
        fetched[0] += 1
        if fetched[0] == 5 * BATCH + 2:  # in the middle of a batch: the random state has moved on
            raise Cut
        return fetch(self, index)

    with monkeypatch.context() as patch:
        patch.setattr(Points, "__getitem__", broken)
        run = Run()
        with pytest.raises(Cut), run.session(tmp_path / "parts", every=1000) as session:
            run.train(session, 3)
    assert stoker.Store(tmp_path / "parts", read_only=True).latest == 5
    again = Run()
    with again.session(tmp_path / "parts") as session:
        again.train(session, 3)
    assert again.weights() == straight(tmp_path / "whole").weights()
