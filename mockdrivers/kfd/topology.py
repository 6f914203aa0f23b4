"""The files a KFD machine shows: device nodes, the topology in /sys, the PCI device and its render node.

They are written once into a folder (the "tree"); the shim looks redirected paths up there. A manifest
names the redirected paths and the files that stand for devices (native/paths.c reads it).

Units:   as the kernel's files have them: MHz, bytes unless `_kb`.
Source:  kfd_topology.c node_show, mem_show, kfd_cache_show, iolink_show; amdgpu_discovery.c for
         ip_discovery.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from stuntgpu.isa.abi import drm
from stuntgpu.isa.abi import kfd as abi
from stuntgpu.mockdrivers.core.client import GpuSlot
from stuntgpu.mockdrivers.profiles import chip

FIRST_RENDER_MINOR = 128
FIRST_GPU_ID, GPU_ID_STEP = 0x5A17, 0x0173  # 16 bits: they also travel in mmap offsets
KFD_MAJOR = 234
PCI_DOMAIN = 0x5347  # a domain no machine has, so that no real device is hidden
VENDOR_ID = 0x1002
TOPOLOGY = "/sys/devices/virtual/kfd/kfd/topology"
PCI_ROOT = f"/sys/devices/pci{PCI_DOMAIN:04x}:00"
LINK_PCIE = 2
HEAP_SYSTEM, HEAP_VRAM_PUBLIC = 0, 1
CAP_WATCH_POINTS, CAP_DOORBELL_64BIT = 0x80 | 2 << 8, 2 << 12

#: kfd_cache `type` bits: 1 data, 2 instruction, 4 CPU, 8 SIMD; of the caches a node lists, in its order.
SHOWN_CACHES = {"vector": 1 | 8, "instruction": 2 | 8, "L2": 1 | 8, "L3": 1 | 8}
CACHE_LEVELS = {"vector": 1, "instruction": 1, "L2": 2, "L3": 3}

Properties = Mapping[str, int]


def gpu_slots(archs: Sequence[str]) -> tuple[GpuSlot, ...]:
    """Numbers for a list of GPUs. Raises Unmodelled for an arch without chip data."""
    return tuple(GpuSlot(chip(arch), FIRST_GPU_ID + GPU_ID_STEP * i, FIRST_RENDER_MINOR + i)
                 for i, arch in enumerate(archs))


class Tree:
    """Writes files below `root` under the paths a client knows."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._manifest: list[str] = []

    def file(self, path: str, content: str = "") -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)

    def properties(self, path: str, values: Properties) -> None:
        self.file(path, "".join(f"{name} {value}\n" for name, value in values.items()))

    def link(self, path: str, to: str) -> None:
        """A relative symlink at `path` to the tree's own path `to`."""
        at = self.root / path.lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to(os.path.relpath(self.root / to.lstrip("/"), at.parent))

    def device(self, path: str, major: int, minor: int) -> None:
        self.file(path)
        (self.root / path.lstrip("/")).chmod(0o666)
        self._manifest.append(f"device {path} {major} {minor}")

    def redirect(self, *paths: str) -> None:
        self._manifest += [f"redirect {path}" for path in paths]

    def finish(self) -> None:
        """Write the manifest; the tree is complete then."""
        (self.root / "manifest").write_text("\n".join(self._manifest) + "\n")


def write_tree(root: Path, slots: Sequence[GpuSlot]) -> None:
    """Everything clients with these GPUs see."""
    tree = Tree(root)
    tree.redirect(abi.KFD_NODE, "/dev/dri", "/sys/devices/virtual/kfd", "/sys/class/kfd", "/sys/class/drm",
                  "/sys/module/amdgpu", PCI_ROOT)
    tree.device(abi.KFD_NODE, KFD_MAJOR, 0)
    tree.link("/sys/class/kfd/kfd", "/sys/devices/virtual/kfd/kfd")
    tree.file("/sys/devices/virtual/kfd/kfd/dev", f"{KFD_MAJOR}:0\n")
    tree.file("/sys/module/amdgpu/initstate", "live\n")
    _write_topology(tree, slots)
    for i, slot in enumerate(slots):
        _write_pci_device(tree, slot, i)
    tree.finish()


def _write_topology(tree: Tree, slots: Sequence[GpuSlot]) -> None:
    tree.file(f"{TOPOLOGY}/generation_id", "1\n")
    tree.properties(f"{TOPOLOGY}/system_properties", {"platform_oem": 0, "platform_id": 0, "platform_rev": 0})
    nodes = [f"{TOPOLOGY}/nodes/{i}" for i in range(len(slots) + 1)]
    tree.file(f"{nodes[0]}/gpu_id", "0\n")
    tree.file(f"{nodes[0]}/name", "\n")
    tree.properties(f"{nodes[0]}/properties", _cpu_properties(len(slots)))
    tree.properties(f"{nodes[0]}/mem_banks/0/properties", _memory_bank(HEAP_SYSTEM, _system_memory_bytes(), 64, 0))
    for i, slot in enumerate(slots):
        tree.properties(f"{nodes[0]}/io_links/{i}/properties", _link(0, i + 1))
        _write_gpu_node(tree, nodes[i + 1], i + 1, slot)


def _write_gpu_node(tree: Tree, node: str, number: int, slot: GpuSlot) -> None:
    device = slot.chip.device
    tree.file(f"{node}/gpu_id", f"{slot.gpu_id}\n")
    tree.file(f"{node}/name", f"{device.codename}\n")
    tree.properties(f"{node}/properties", _gpu_properties(slot, number))
    tree.properties(f"{node}/mem_banks/0/properties",
                    _memory_bank(HEAP_VRAM_PUBLIC, device.vram_bytes, device.memory_bits, device.memory_mhz))
    tree.properties(f"{node}/io_links/0/properties", _link(number, 0))
    for i, (kind, type_) in enumerate(SHOWN_CACHES.items()):
        cache = device.caches[kind]
        tree.properties(f"{node}/caches/{i}/properties", {
            "processor_id_low": _simd_id_base(number), "level": CACHE_LEVELS[kind], "size": cache.size_kb,
            "cache_line_size": cache.line_bytes, "cache_lines_per_tag": 1, "association": 16, "latency": 1,
            "type": type_, "sibling_map": 1})


def _cpu_properties(gpus: int) -> Properties:
    return {
        "cpu_cores_count": os.cpu_count() or 1, "simd_count": 0, "mem_banks_count": 1, "caches_count": 0,
        "io_links_count": gpus, "p2p_links_count": 0, "cpu_core_id_base": 0, "simd_id_base": 0,
        "max_waves_per_simd": 0, "lds_size_in_kb": 0, "gds_size_in_kb": 0, "num_gws": 0, "wave_front_size": 0,
        "array_count": 0, "simd_arrays_per_engine": 0, "cu_per_simd_array": 0, "simd_per_cu": 0,
        "max_slots_scratch_cu": 0, "gfx_target_version": 0, "vendor_id": 0, "device_id": 0, "location_id": 0,
        "domain": 0, "drm_render_minor": 0, "hive_id": 0, "num_sdma_engines": 0, "num_sdma_xgmi_engines": 0,
        "num_sdma_queues_per_engine": 0, "num_cp_queues": 0, "max_engine_clk_ccompute": 3000,
    }


def _simd_id_base(number: int) -> int:
    return 0x80000000 + 0x1000 * number


def _gpu_properties(slot: GpuSlot, number: int) -> Properties:
    model, device = slot.chip, slot.chip.device
    return {
        "cpu_cores_count": 0, "simd_count": device.simds, "mem_banks_count": 1,
        "caches_count": len(SHOWN_CACHES), "io_links_count": 1, "p2p_links_count": 0, "cpu_core_id_base": 0,
        "simd_id_base": _simd_id_base(number), "max_waves_per_simd": device.wave_slots,
        "lds_size_in_kb": device.lds_bytes >> 10, "gds_size_in_kb": 0, "num_gws": model.num_gws,
        "wave_front_size": device.wave_lanes, "array_count": device.arrays * device.xccs,
        "simd_arrays_per_engine": device.arrays_per_engine, "cu_per_simd_array": device.array_cus,
        "simd_per_cu": device.simds_per_cu, "max_slots_scratch_cu": device.scratch_slots,
        "gfx_target_version": device.gfx_target_version, "vendor_id": VENDOR_ID, "device_id": device.pci_device,
        "location_id": (2 + number) << 8, "domain": PCI_DOMAIN, "drm_render_minor": slot.render_minor,
        "hive_id": 0, "num_sdma_engines": model.sdma_engines, "num_sdma_xgmi_engines": 0,
        "num_sdma_queues_per_engine": model.sdma_queues_per_engine, "num_cp_queues": model.cp_queues,
        "max_engine_clk_fcompute": device.engine_mhz, "local_mem_size": 0, "fw_version": model.firmware,
        "capability": CAP_WATCH_POINTS | CAP_DOORBELL_64BIT, "debug_prop": 0,
        "sdma_fw_version": model.sdma_firmware, "unique_id": 0x5347_0000_0000 + number, "num_xcc": device.xccs,
        "max_engine_clk_ccompute": 3000,
    }


def _memory_bank(heap_type: int, size: int, bits: int, clock_mhz: int) -> Properties:
    return {"heap_type": heap_type, "size_in_bytes": size, "flags": 0, "width": bits, "mem_clk_max": clock_mhz}


def _link(node_from: int, node_to: int) -> Properties:
    return {"type": LINK_PCIE, "version_major": 0, "version_minor": 0, "node_from": node_from, "node_to": node_to,
            "weight": 20, "min_latency": 0, "max_latency": 0, "min_bandwidth": 312, "max_bandwidth": 32000,
            "recommended_transfer_size": 0, "recommended_sdma_engine_id_mask": 0, "flags": 1}


def _system_memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _write_pci_device(tree: Tree, slot: GpuSlot, index: int) -> None:
    bus, minor, device = index + 3, slot.render_minor, slot.chip.device
    address = f"{PCI_DOMAIN:04x}:{bus:02x}:00.0"
    pci, render = f"{PCI_ROOT}/{address}", f"renderD{minor}"
    tree.device(f"/dev/dri/{render}", drm.DRM_MAJOR, minor)
    tree.redirect(f"/sys/dev/char/{drm.DRM_MAJOR}:{minor}")
    for name, value in {"vendor": VENDOR_ID, "device": device.pci_device, "subsystem_vendor": VENDOR_ID,
                        "subsystem_device": 0x0E0D, "class": 0x030000, "revision": 0}.items():
        width = 6 if name == "class" else 2 if name == "revision" else 4
        tree.file(f"{pci}/{name}", f"0x{value:0{width}x}\n")
    tree.file(f"{pci}/uevent", f"DRIVER=amdgpu\nPCI_ID={VENDOR_ID:04X}:{device.pci_device:04X}\n"
                               f"PCI_SLOT_NAME={address}\n")
    tree.file(f"{pci}/mem_info_vram_total", f"{device.vram_bytes}\n")
    tree.file(f"{pci}/drm/{render}/dev", f"{drm.DRM_MAJOR}:{minor}\n")
    tree.link(f"{pci}/drm/{render}/device", pci)
    tree.link(f"/sys/class/drm/{render}", f"{pci}/drm/{render}")
    tree.link(f"/sys/dev/char/{drm.DRM_MAJOR}:{minor}", f"{pci}/drm/{render}")
    for hwid, major, minor_version, revision in slot.chip.ip_versions:
        die = f"{pci}/ip_discovery/die/0/{hwid}/0"
        for name, number in {"major": major, "minor": minor_version, "revision": revision}.items():
            tree.file(f"{die}/{name}", f"{number}\n")
