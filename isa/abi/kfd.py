"""The AMD KFD user interface: ioctl numbers, argument structs and flags of /dev/kfd.

Both sides use it: runtime/ fills these structs, mockdrivers/kfd/ answers them.

Units:   bytes; addresses are 64-bit GPU VAs, which KFD keeps equal to the CPU's addresses.
Source:  linux uapi kfd_ioctl.h, interface version 1.17 (tests compare with the installed header);
         mmap offset types: kfd_priv.h KFD_MMAP_*.
"""

import ctypes
from enum import IntEnum, IntFlag
from typing import Annotated

from stuntgpu.isa.abi.ioctl import I32, READ, READ_WRITE, U32, U64, WRITE, CStruct, Ioctl, layout

KFD_NODE = "/dev/kfd"
MAJOR_VERSION, MINOR_VERSION = 1, 17

NUM_OF_SUPPORTED_GPUS = 7
KFD_SIGNAL_EVENT_LIMIT = 4096
UNSIGNALED_EVENT_SLOT = 0xFFFF_FFFF_FFFF_FFFF  # what a mailbox slot holds until the GPU writes it
TIMEOUT_FOREVER = 0xFFFF_FFFF

KFD_MMAP_TYPE_SHIFT = 62
KFD_MMAP_GPU_ID_SHIFT = 46
KFD_MMAP_TYPE_DOORBELL, KFD_MMAP_TYPE_EVENTS, KFD_MMAP_TYPE_MMIO = 3, 2, 0


class QueueType(IntEnum):
    """KFD_IOC_QUEUE_TYPE_*"""

    COMPUTE = 0
    SDMA = 1
    COMPUTE_AQL = 2
    SDMA_XGMI = 3
    SDMA_BY_ENG_ID = 4


KFD_MAX_QUEUE_PERCENTAGE = 100
KFD_MAX_QUEUE_PRIORITY = 15


class AllocFlags(IntFlag):
    """KFD_IOC_ALLOC_MEM_FLAGS_*"""

    VRAM = 1 << 0
    GTT = 1 << 1
    USERPTR = 1 << 2
    DOORBELL = 1 << 3
    MMIO_REMAP = 1 << 4
    CONTIGUOUS = 1 << 23
    EXT_COHERENT = 1 << 24
    UNCACHED = 1 << 25
    COHERENT = 1 << 26
    AQL_QUEUE_MEM = 1 << 27
    NO_SUBSTITUTE = 1 << 28
    PUBLIC = 1 << 29
    EXECUTABLE = 1 << 30
    WRITABLE = 1 << 31


class EventType(IntEnum):
    """KFD_IOC_EVENT_*"""

    SIGNAL = 0
    NODECHANGE = 1
    DEVICESTATECHANGE = 2
    HW_EXCEPTION = 3
    SYSTEM_EVENT = 4
    DEBUG_EVENT = 5
    PROFILE_EVENT = 6
    QUEUE_EVENT = 7
    MEMORY = 8


class WaitResult(IntEnum):
    """KFD_IOC_WAIT_RESULT_*"""

    COMPLETE = 0
    TIMEOUT = 1
    FAIL = 2


class ResetType(IntEnum):
    """KFD_HW_EXCEPTION_*_RESET"""

    WHOLE_GPU = 0
    PER_ENGINE = 1


class ResetCause(IntEnum):
    """KFD_HW_EXCEPTION_*"""

    GPU_HANG = 0
    ECC = 1


@layout
class GetVersion(CStruct):
    major_version: U32
    minor_version: U32


@layout
class CreateQueue(CStruct):
    ring_base_address: U64
    write_pointer_address: U64
    read_pointer_address: U64
    doorbell_offset: U64
    ring_size: U32
    gpu_id: U32
    queue_type: U32
    queue_percentage: U32
    queue_priority: U32
    queue_id: U32
    eop_buffer_address: U64
    eop_buffer_size: U64
    ctx_save_restore_address: U64
    ctx_save_restore_size: U32
    ctl_stack_size: U32
    sdma_engine_id: U32
    pad: U32


@layout
class DestroyQueue(CStruct):
    queue_id: U32
    pad: U32


@layout
class UpdateQueue(CStruct):
    ring_base_address: U64
    queue_id: U32
    ring_size: U32
    queue_percentage: U32
    queue_priority: U32


@layout
class SetCuMask(CStruct):
    queue_id: U32
    num_cu_mask: U32
    cu_mask_ptr: U64


@layout
class GetQueueWaveState(CStruct):
    ctl_stack_address: U64
    ctl_stack_used_size: U32
    save_area_used_size: U32
    queue_id: U32
    pad: U32


@layout
class GetAvailableMemory(CStruct):
    available: U64
    gpu_id: U32
    pad: U32


@layout
class SetMemoryPolicy(CStruct):
    alternate_aperture_base: U64
    alternate_aperture_size: U64
    gpu_id: U32
    default_policy: U32
    alternate_policy: U32
    misc_process_flag: U32


@layout
class GetClockCounters(CStruct):
    gpu_clock_counter: U64
    cpu_clock_counter: U64
    system_clock_counter: U64
    system_clock_freq: U64
    gpu_id: U32
    pad: U32


@layout
class ProcessDeviceApertures(CStruct):
    lds_base: U64
    lds_limit: U64
    scratch_base: U64
    scratch_limit: U64
    gpuvm_base: U64
    gpuvm_limit: U64
    gpu_id: U32
    pad: U32


@layout
class GetProcessApertures(CStruct):
    process_apertures: Annotated["ctypes.Array[ProcessDeviceApertures]",
                                 ProcessDeviceApertures * NUM_OF_SUPPORTED_GPUS]
    num_of_nodes: U32
    pad: U32


@layout
class GetProcessAperturesNew(CStruct):
    kfd_process_device_apertures_ptr: U64
    num_of_nodes: U32
    pad: U32


@layout
class DbgRegister(CStruct):
    """The deprecated debugger calls 0x0d to 0x10, told apart by number only."""

    gpu_id: U32
    pad: U32


@layout
class DbgBuffer(CStruct):
    content_ptr: U64
    gpu_id: U32
    buf_size_in_bytes: U32


@layout
class CreateEvent(CStruct):
    event_page_offset: U64
    event_trigger_data: U32
    event_type: U32
    auto_reset: U32
    node_id: U32
    event_id: U32
    event_slot_index: U32


@layout
class EventId(CStruct):
    """DESTROY_EVENT, SET_EVENT, RESET_EVENT."""

    event_id: U32
    pad: U32


@layout
class MemoryExceptionData(CStruct):
    NotPresent: U32
    ReadOnly: U32
    NoExecute: U32
    imprecise: U32
    va: U64
    gpu_id: U32
    ErrorType: U32


@layout
class HwExceptionData(CStruct):
    reset_type: U32
    reset_cause: U32
    memory_lost: U32
    gpu_id: U32


class _EventPayload(ctypes.Union):
    _fields_ = (
        ("memory_exception_data", MemoryExceptionData),
        ("hw_exception_data", HwExceptionData),
        ("last_event_age", ctypes.c_uint64),
    )
    memory_exception_data: MemoryExceptionData
    hw_exception_data: HwExceptionData
    last_event_age: int


@layout
class EventData(CStruct):
    """One element of WAIT_EVENTS' array: what happened (from KFD) to which event (to KFD)."""

    payload: Annotated[_EventPayload, _EventPayload]
    kfd_event_data_ext: U64
    event_id: U32
    pad: U32


@layout
class WaitEvents(CStruct):
    """`timeout` in milliseconds, TIMEOUT_FOREVER waits without end."""

    events_ptr: U64
    num_events: U32
    wait_for_all: U32
    timeout: U32
    wait_result: U32


@layout
class SetScratchBackingVa(CStruct):
    va_addr: U64
    gpu_id: U32
    pad: U32


@layout
class GetTileConfig(CStruct):
    tile_config_ptr: U64
    macro_tile_config_ptr: U64
    num_tile_configs: U32
    num_macro_tile_configs: U32
    gpu_id: U32
    gb_addr_config: U32
    num_banks: U32
    num_ranks: U32


@layout
class SetTrapHandler(CStruct):
    tba_addr: U64
    tma_addr: U64
    gpu_id: U32
    pad: U32


@layout
class AcquireVm(CStruct):
    drm_fd: U32
    gpu_id: U32


@layout
class AllocMemoryOfGpu(CStruct):
    """`mmap_offset`: the CPU address for USERPTR (to KFD), else the offset for mmap (from KFD)."""

    va_addr: U64
    size: U64
    handle: U64
    mmap_offset: U64
    gpu_id: U32
    flags: U32


@layout
class FreeMemoryOfGpu(CStruct):
    handle: U64


@layout
class MapMemoryToGpu(CStruct):
    """MAP_MEMORY_TO_GPU and UNMAP_MEMORY_FROM_GPU."""

    handle: U64
    device_ids_array_ptr: U64
    n_devices: U32
    n_success: U32


@layout
class AllocQueueGws(CStruct):
    queue_id: U32
    num_gws: U32
    first_gws: U32
    pad: U32


@layout
class GetDmabufInfo(CStruct):
    size: U64
    metadata_ptr: U64
    metadata_size: U32
    gpu_id: U32
    flags: U32
    dmabuf_fd: U32


@layout
class ImportDmabuf(CStruct):
    va_addr: U64
    handle: U64
    gpu_id: U32
    dmabuf_fd: U32


@layout
class ExportDmabuf(CStruct):
    handle: U64
    flags: U32
    dmabuf_fd: U32


@layout
class SmiEvents(CStruct):
    gpuid: U32
    anon_fd: U32


@layout
class Svm(CStruct):
    """Followed in memory by `nattr` pairs of u32 (type, value)."""

    start_addr: U64
    size: U64
    op: U32
    nattr: U32


@layout
class SetXnackMode(CStruct):
    xnack_enabled: I32


@layout
class Criu(CStruct):
    devices: U64
    bos: U64
    priv_data: U64
    priv_data_size: U64
    num_devices: U32
    num_bos: U32
    num_objects: U32
    pid: U32
    op: U32


@layout
class RuntimeEnable(CStruct):
    """`mode_mask` bit 0 enable, bit 1 trap temporaries set up by the runtime."""

    r_debug: U64
    mode_mask: U32
    capabilities_mask: U32


@layout
class DbgTrap(CStruct):
    """Head of the debugger's call; its per-operation union reaches 32 bytes in all."""

    pid: U32
    op: U32
    data: Annotated["ctypes.Array[ctypes.c_uint64]", ctypes.c_uint64 * 3]


AMDKFD_IOCTL_BASE = "K"


def _kfd(name: str, nr: int, struct: type[CStruct], direction: int = READ_WRITE) -> Ioctl:
    return Ioctl(name, AMDKFD_IOCTL_BASE, nr, struct, direction)


GET_VERSION = _kfd("GET_VERSION", 0x01, GetVersion, READ)
CREATE_QUEUE = _kfd("CREATE_QUEUE", 0x02, CreateQueue)
DESTROY_QUEUE = _kfd("DESTROY_QUEUE", 0x03, DestroyQueue)
SET_MEMORY_POLICY = _kfd("SET_MEMORY_POLICY", 0x04, SetMemoryPolicy, WRITE)
GET_CLOCK_COUNTERS = _kfd("GET_CLOCK_COUNTERS", 0x05, GetClockCounters)
GET_PROCESS_APERTURES = _kfd("GET_PROCESS_APERTURES", 0x06, GetProcessApertures, READ)
UPDATE_QUEUE = _kfd("UPDATE_QUEUE", 0x07, UpdateQueue, WRITE)
CREATE_EVENT = _kfd("CREATE_EVENT", 0x08, CreateEvent)
DESTROY_EVENT = _kfd("DESTROY_EVENT", 0x09, EventId, WRITE)
SET_EVENT = _kfd("SET_EVENT", 0x0A, EventId, WRITE)
RESET_EVENT = _kfd("RESET_EVENT", 0x0B, EventId, WRITE)
WAIT_EVENTS = _kfd("WAIT_EVENTS", 0x0C, WaitEvents)
DBG_REGISTER_DEPRECATED = _kfd("DBG_REGISTER_DEPRECATED", 0x0D, DbgRegister, WRITE)
DBG_UNREGISTER_DEPRECATED = _kfd("DBG_UNREGISTER_DEPRECATED", 0x0E, DbgRegister, WRITE)
DBG_ADDRESS_WATCH_DEPRECATED = _kfd("DBG_ADDRESS_WATCH_DEPRECATED", 0x0F, DbgBuffer, WRITE)
DBG_WAVE_CONTROL_DEPRECATED = _kfd("DBG_WAVE_CONTROL_DEPRECATED", 0x10, DbgBuffer, WRITE)
SET_SCRATCH_BACKING_VA = _kfd("SET_SCRATCH_BACKING_VA", 0x11, SetScratchBackingVa)
GET_TILE_CONFIG = _kfd("GET_TILE_CONFIG", 0x12, GetTileConfig)
SET_TRAP_HANDLER = _kfd("SET_TRAP_HANDLER", 0x13, SetTrapHandler, WRITE)
GET_PROCESS_APERTURES_NEW = _kfd("GET_PROCESS_APERTURES_NEW", 0x14, GetProcessAperturesNew)
ACQUIRE_VM = _kfd("ACQUIRE_VM", 0x15, AcquireVm, WRITE)
ALLOC_MEMORY_OF_GPU = _kfd("ALLOC_MEMORY_OF_GPU", 0x16, AllocMemoryOfGpu)
FREE_MEMORY_OF_GPU = _kfd("FREE_MEMORY_OF_GPU", 0x17, FreeMemoryOfGpu, WRITE)
MAP_MEMORY_TO_GPU = _kfd("MAP_MEMORY_TO_GPU", 0x18, MapMemoryToGpu)
UNMAP_MEMORY_FROM_GPU = _kfd("UNMAP_MEMORY_FROM_GPU", 0x19, MapMemoryToGpu)
SET_CU_MASK = _kfd("SET_CU_MASK", 0x1A, SetCuMask, WRITE)
GET_QUEUE_WAVE_STATE = _kfd("GET_QUEUE_WAVE_STATE", 0x1B, GetQueueWaveState)
GET_DMABUF_INFO = _kfd("GET_DMABUF_INFO", 0x1C, GetDmabufInfo)
IMPORT_DMABUF = _kfd("IMPORT_DMABUF", 0x1D, ImportDmabuf)
ALLOC_QUEUE_GWS = _kfd("ALLOC_QUEUE_GWS", 0x1E, AllocQueueGws)
SMI_EVENTS = _kfd("SMI_EVENTS", 0x1F, SmiEvents)
SVM = _kfd("SVM", 0x20, Svm)
SET_XNACK_MODE = _kfd("SET_XNACK_MODE", 0x21, SetXnackMode)
CRIU_OP = _kfd("CRIU_OP", 0x22, Criu)
AVAILABLE_MEMORY = _kfd("AVAILABLE_MEMORY", 0x23, GetAvailableMemory)
EXPORT_DMABUF = _kfd("EXPORT_DMABUF", 0x24, ExportDmabuf)
RUNTIME_ENABLE = _kfd("RUNTIME_ENABLE", 0x25, RuntimeEnable)
DBG_TRAP = _kfd("DBG_TRAP", 0x26, DbgTrap)

IOCTLS = tuple(value for value in list(globals().values()) if isinstance(value, Ioctl))


@layout
class LastFault(CStruct):
    """Our own call on /dev/kfd: the report of the oldest fault not fetched yet, as UTF-8 text.

    `text_ptr` a buffer of `size_bytes`; `length_bytes` (from the driver) is the whole report's
    length, 0 when there is none. A report that does not fit stays to be fetched. A real driver
    answers EINVAL or ENOTTY.
    """

    text_ptr: U64
    size_bytes: U32
    length_bytes: U32


LAST_FAULT = Ioctl("LAST_FAULT", "S", 0x01, LastFault, READ_WRITE)
