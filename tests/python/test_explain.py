"""``stoker explain``: one log in, one cause out, or a plain "not known"."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Cli = Callable[..., subprocess.CompletedProcess[str]]

FRAGMENTED_TRAP = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.78 GiB. GPU 0 has a total "
    "capacity of 31.47 GiB of which "
    "12.73 GiB is free. Of the allocated memory 9.08 GiB is allocated by PyTorch, and 9.35 GiB is "
    "reserved by PyTorch but "
    "unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"
)


def test_out_of_memory_is_told_with_its_numbers(cli: Cli) -> None:
    done = cli("explain", input=FRAGMENTED_TRAP)
    assert done.returncode == 0
    assert done.stdout == (
        "GPU memory ran out on a single large request of 22.78 GiB; fragmentation is there, but it is "
        "not enough to explain "
        "it. [oom-one-large-request-with-fragmentation]\n"
        f"  line 1: {FRAGMENTED_TRAP[:200]}…\n"
        "\n"
        "  12.73 free + 9.35 reserved but unused = 22.08 GiB, less than the 22.78 GiB asked for: even "
        "with no fragmentation at "
        "all it would not fit, so the advice in this message cannot help by itself.\n"
        "what to do:\n"
        "  1. Make this one request smaller: a smaller input, tiles or patches, or a smaller batch.\n"
        "  2. Then try `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`: 9.35 GiB reserved by the "
        "allocator but unused would "
        "become usable.\n"
    )


def test_unknown_text_is_said_plainly(cli: Cli) -> None:
    done = cli("explain", input="all is well\nWeirdError: seven\n")
    assert done.returncode == 1
    assert (
        done.stdout
        == "none of the causes that Stoker knows matches this text\nits last error: WeirdError: seven\n"
    )
    assert cli("explain", input="").stdout == "the log is empty\n"


def test_json_has_every_cause(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "error.log"
    log.write_text(
        "RuntimeError: CUDA error: device-side assert triggered\nOSError: [Errno 28] No space left on device\n"
    )
    answer = json.loads(cli("explain", log, "--json").stdout)
    assert answer["schema"] == "stoker.explain.v1"
    assert [c["cause"] for c in answer["causes"]] == ["disk-full-on-save", "device-side-assert"]
    assert answer["causes"][0]["line"] == 2
    missing = cli("explain", tmp_path / "absent.log")
    assert missing.returncode == 1
    assert missing.stderr.startswith("error: cannot open")


def test_public_cases_are_explained(cli: Cli, shared: Path) -> None:
    score = subprocess.run(
        [sys.executable, shared / "cases/explain/score", "stoker", "explain"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert score.returncode == 0, score.stdout
