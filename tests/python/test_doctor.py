"""``stoker doctor``: recorded machines in, whole answers out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Cli = Callable[..., subprocess.CompletedProcess[str]]
ROOT = Path(__file__).resolve().parents[2]
MACHINES = ROOT / "tests/data/machines"
STUB_NVML = ROOT / "build/release/tests/libstub_nvml.so"
P100 = "Tesla P100-PCIE-16GB;60;17179869184;300000000;0;0"


def recorded(machine: str, gpus: str = "", **variables: str) -> dict[str, str]:
    """The environment in which ``doctor`` sees a recorded machine, with these GPUs."""
    return {
        "PATH": "/usr/local/bin:/usr/bin",
        "STOKER_MACHINE_ROOT": str(MACHINES / machine),
        "STOKER_NVML_LIBRARY": str(STUB_NVML) if gpus else "libnvidia-ml.so.1",
        "STUB_NVML_GPUS": gpus,
        **variables,
    }


@pytest.fixture
def findings(cli: Cli) -> Callable[..., list[dict[str, str]]]:
    def run(machine: str, *words: str, gpus: str = "", **variables: str) -> list[dict[str, str]]:
        done = cli("doctor", "--json", *words, env=recorded(machine, gpus, **variables))
        answer = json.loads(done.stdout)
        assert done.returncode == (0 if answer["fit"] else 1)
        return list(answer["findings"])

    return run


def test_kaggle_with_a_p100_is_unfit_and_says_what_to_pick(cli: Cli) -> None:
    """Cases D01, D07 and S10."""
    done = cli(
        "doctor",
        "/kaggle/working",
        env=recorded("kaggle-p100", P100, STUB_NVML_DRIVER="580.1", STUB_NVML_CUDA="13000"),
    )
    version = cli("--version").stdout.split()[1]
    assert done.stdout == (
        "machine   Kaggle\n"
        "CPUs      4 usable of 4, Intel(R) Xeon(R) CPU @ 2.00GHz\n"
        "memory    30.7 GB left of 32.2 GB (cgroup v2 /sys/fs/cgroup)\n"
        "/dev/shm  15.0 GB\n"
        "disk      free space not known (a recorded machine) for work at /kaggle/working (local, ext4)\n"
        "GPU       Tesla P100-PCIE-16GB, sm_60, 17.2 GB (300 MB in use)\n"
        "driver    580.1, CUDA up to 13.0\n"
        "Python    3.12, /usr/local/bin/python3 (system)\n"
        "torch     2.10.0+cu128, CUDA 12.8\n"
        "packages  torchvision 0.25.0+cu128, NumPy 2.3.5, Pillow 12.0.0\n"
        f"Stoker    {version}\n"
        "\n"
        "unfit: the Tesla P100-PCIE-16GB (sm_60) is too old for torch 2.10.0+cu128, whose wheels hold "
        "code for sm_70 to sm_12x\n"
        "  do: choose the accelerator GPU T4 x2 instead\n"
        "odd: the Tesla P100-PCIE-16GB (sm_60) lacks torch.compile (Triton needs 7.0), Tensor Cores, "
        "bfloat16 and FlashAttention 2\n"
        "  do: leave torch.compile out; mixed precision saves memory here, not time\n"
        "odd: /kaggle/input is read-only: no cache or index can be written beside the data\n"
        "  do: write to /kaggle/working (20 GB) or /tmp; Stoker's own caches go to $STOKER_CACHE\n"
        "this machine is not fit to train on as it is\n"
    )
    assert done.returncode == 1


def test_quota_and_small_shm_of_a_container(findings: Callable[..., list[dict[str, str]]]) -> None:
    """Cases D04, D05 and M10."""
    found = {f["check"]: f for f in findings("docker-v1")}
    assert found["cpu_quota"]["what"] == (
        "2 of 96 CPUs are usable (CPU quota of 1.5 in /sys/fs/cgroup/cpu,cpuacct), and os.cpu_count() says 96"
    )
    assert found["cpu_quota"]["advice"] == "export OMP_NUM_THREADS=2, and give DataLoader at most 2 workers"
    assert found["shm"]["what"] == (
        "/dev/shm has 67.1 MB: enough for not even one DataLoader worker at batch 64 of 224 x 224 "
        "floats (116 MB a worker)"
    )


def test_missing_gpu_is_said_plainly_and_fails_only_when_expected(cli: Cli) -> None:
    """Case D08."""
    env = recorded("colab")
    calm = cli("doctor", env=env)
    assert calm.returncode == 0
    assert "GPU       none (no NVIDIA driver: libnvidia-ml.so.1 is not on this machine)\n" in calm.stdout
    expected = cli("doctor", "--expect-gpu", env=env)
    assert expected.returncode == 1
    assert (
        "unfit: there is no GPU: no NVIDIA driver: libnvidia-ml.so.1 is not on this machine\n"
        in expected.stdout
    )
    assert "Runtime > Change runtime type" in expected.stdout


def test_driver_of_an_older_cuda_is_unfit_and_kaggle_is_not_told_to_update_it(
    findings: Callable[..., list[dict[str, str]]],
) -> None:
    """Case D03."""
    gpu = "Tesla T4;75;16106127360;300000000;0;0"
    (driver,) = [
        f for f in findings("kaggle-p100", gpus=gpu, STUB_NVML_CUDA="11080") if f["check"] == "gpu_driver"
    ]
    assert driver["fitness"] == "unfit"
    assert (
        driver["what"]
        == "the driver (550.54.15) reaches CUDA 11.8, and torch 2.10.0+cu128 is built for CUDA 12.8"
    )
    assert "newer driver" not in driver["advice"]
    # Within CUDA 12 any driver will do.
    assert not [
        f for f in findings("kaggle-p100", gpus=gpu, STUB_NVML_CUDA="12010") if f["check"] == "gpu_driver"
    ]


@pytest.mark.parametrize(
    ("gpu", "verdict"),
    [
        ("Tesla T4;75", None),
        ("NVIDIA L4;89", None),
        ("NVIDIA H100;90", None),
        ("NVIDIA GeForce RTX 5090;120", None),
        ("Tesla K80;37", "too old"),
        ("Future;130", "too new"),
    ],
)
def test_architecture_table(
    findings: Callable[..., list[dict[str, str]]], gpu: str, verdict: str | None
) -> None:
    """Cases D01 and D02: the remedies of the two directions are opposite."""
    found = findings("kaggle-p100", gpus=gpu + ";16106127360;0;0;0", STUB_NVML_CUDA="13000")
    unfit = [f["what"] for f in found if f["check"] == "gpu_architecture"]
    assert bool(unfit) == (verdict is not None)
    assert all(verdict and verdict in what for what in unfit)


def test_memory_that_no_process_holds_is_told(findings: Callable[..., list[dict[str, str]]]) -> None:
    """Case D06."""
    gpu = "Tesla T4;75;16106127360;12799000000;0;0"
    (dirty,) = [
        f for f in findings("kaggle-p100", gpus=gpu, STUB_NVML_CUDA="13000") if f["check"] == "gpu_memory"
    ]
    assert (
        dirty["what"]
        == "12.8 GB of 16.1 GB on the Tesla T4 are in use, and the processes one can see hold 0 B"
    )


def test_drive_and_network_homes_are_named(findings: Callable[..., list[dict[str, str]]]) -> None:
    assert any("Google Drive is mounted" in f["what"] for f in findings("colab"))
    (place,) = [f for f in findings("v2-nested", "/home/me/project") if f["check"] == "mounts"]
    assert (
        place["what"]
        == "the place for work (/home/me/project) is on a network mount (/home, nfs4): each file costs a round trip"
    )


def test_this_machine_is_described_quickly_and_without_importing_torch(cli: Cli) -> None:
    done = cli("doctor", "--json", "--python", sys.executable)
    answer = json.loads(done.stdout)
    assert answer["schema"] == "stoker.doctor.v1"
    assert answer["cpu"]["usable"] >= 1
    assert answer["cpu"]["usable"] <= (os.cpu_count() or 1)
    assert answer["python"]["version"]["value"] == ".".join(map(str, sys.version_info[:3]))
    import importlib.metadata

    assert answer["python"]["numpy"]["value"] == importlib.metadata.version("numpy")
    assert (
        answer["python"]["torch"]["value"].split("+")[0] == importlib.metadata.version("torch").split("+")[0]
    )


def test_relative_python_is_meant_from_the_current_folder(cli: Cli) -> None:
    python = Path(sys.executable)
    done = cli("doctor", "--json", "--python", Path("bin") / python.name, cwd=python.parent.parent)
    found = Path(json.loads(done.stdout)["python"]["executable"]["value"])
    assert found.is_absolute()
    assert found.samefile(python)  # the environment's folder may be a link


def test_unknown_python_says_so(findings: Callable[..., list[dict[str, str]]]) -> None:
    found = findings("kaggle-p100", "--python", "/nowhere/python")
    assert [f["what"] for f in found if f["check"] == "python"] == ["/nowhere/python is not there"]
