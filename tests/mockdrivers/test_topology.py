"""The tree of files: what libhsakmt counts and cross-checks holds for any number of GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from stuntgpu.isa.errors import Unmodelled
from stuntgpu.mockdrivers.kfd.topology import TOPOLOGY, gpu_slots, write_tree
from stuntgpu.mockdrivers.profiles import CHIPS


@pytest.fixture(params=[1, 3], ids=["one GPU", "three GPUs"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, int]:
    write_tree(tmp_path, gpu_slots(["gfx1100"] * request.param))
    return tmp_path, request.param


def properties(path: Path) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split() for line in path.read_text().splitlines())}


def nodes(root: Path) -> list[Path]:
    return sorted((root / TOPOLOGY.lstrip("/") / "nodes").iterdir())


def test_counts_in_properties_match_the_folders(tree: tuple[Path, int]) -> None:
    for node in nodes(tree[0]):
        found = properties(node / "properties")
        for count, folder in (("mem_banks_count", "mem_banks"), ("caches_count", "caches"), ("io_links_count", "io_links")):
            there = sorted(p.name for p in (node / folder).iterdir()) if (node / folder).exists() else []
            assert there == [str(i) for i in range(found[count])], (node, folder)


def test_node_0_is_the_cpu_and_the_rest_are_gpus(tree: tuple[Path, int]) -> None:
    cpu, *gpus = nodes(tree[0])
    assert (cpu / "gpu_id").read_text() == "0\n"
    assert properties(cpu / "properties")["simd_count"] == 0
    assert len(gpus) == tree[1]
    ids = {int((gpu / "gpu_id").read_text()) for gpu in gpus}
    assert len(ids) == tree[1]
    assert all(0 < gpu_id < 1 << 16 for gpu_id in ids)  # they travel in 16 bits of an mmap offset


def test_links_name_both_ends(tree: tuple[Path, int]) -> None:
    for number, node in enumerate(nodes(tree[0])):
        for link in (node / "io_links").iterdir():
            ends = properties(link / "properties")
            assert ends["node_from"] == number
            assert (ends["node_to"] == 0) == (number != 0)


def test_topology_shows_the_device_profile(tree: tuple[Path, int]) -> None:
    device = CHIPS["gfx1100"].device
    shown = properties(nodes(tree[0])[1] / "properties")
    assert shown["simd_count"] == shown["array_count"] * shown["cu_per_simd_array"] * shown["simd_per_cu"] == device.simds
    assert shown["lds_size_in_kb"] << 10 == device.lds_bytes
    assert shown["max_waves_per_simd"] == device.wave_slots


def test_each_gpu_has_a_render_node_that_leads_to_its_pci_device(tree: tuple[Path, int]) -> None:
    root, n = tree
    for i in range(n):
        render = root / f"sys/class/drm/renderD{128 + i}"
        assert (render / "dev").read_text() == f"226:{128 + i}\n"
        device = (render / "device").resolve()
        assert (device / "vendor").read_text() == "0x1002\n"
        assert (device / "ip_discovery/die/0/11/0/major").read_text() == "11\n"
        assert (root / f"sys/dev/char/226:{128 + i}").resolve() == render.resolve()


def test_the_manifest_names_devices_that_exist_and_lie_below_a_redirect(tree: tuple[Path, int]) -> None:
    root, n = tree
    rows = [line.split() for line in (root / "manifest").read_text().splitlines()]
    devices = [row[1] for row in rows if row[0] == "device"]
    redirects = [row[1] for row in rows if row[0] == "redirect"]
    assert len(devices) == 1 + n
    for path in devices:
        assert (root / path.lstrip("/")).is_file()
        assert any(path == top or path.startswith(top + "/") for top in redirects)


def test_unknown_gpu_says_where_it_would_go() -> None:
    with pytest.raises(Unmodelled, match=r"gfx906: .*mockdrivers/profiles.py"):
        gpu_slots(["gfx1100", "gfx906"])
