/* The few KFD calls kfd_dispatch.c makes, spelled out so that it builds without kernel headers. */
#ifndef KFD_ABI_H
#define KFD_ABI_H

#include <stdint.h>
#include <sys/ioctl.h>

#define VRAM 1u
#define GTT (2u | WRITABLE | EXECUTABLE)
#define WRITABLE (1u << 31)
#define EXECUTABLE (1u << 30)
#define PUBLIC (1u << 29)

struct kfd_acquire_vm {
    uint32_t drm_fd, gpu_id;
};

struct kfd_alloc {
    uint64_t va_addr, size, handle, mmap_offset;
    uint32_t gpu_id, flags;
};

struct kfd_map {
    uint64_t handle, device_ids_array_ptr;
    uint32_t n_devices, n_success;
};

struct kfd_create_queue {
    uint64_t ring_base_address, write_pointer_address, read_pointer_address, doorbell_offset;
    uint32_t ring_size, gpu_id, queue_type, queue_percentage, queue_priority, queue_id;
    uint64_t eop_buffer_address, eop_buffer_size, ctx_save_restore_address;
    uint32_t ctx_save_restore_size, ctl_stack_size;
};

struct kfd_create_event {
    uint64_t event_page_offset;
    uint32_t event_trigger_data, event_type, auto_reset, node_id, event_id, event_slot_index;
};

struct kfd_event_data {
    union {
        struct {
            uint32_t NotPresent, ReadOnly, NoExecute, imprecise;
            uint64_t va;
            uint32_t gpu_id, ErrorType;
        } memory;
        struct {
            uint32_t reset_type, reset_cause, memory_lost, gpu_id;
        } hw;
    } payload;
    uint64_t extension;
    uint32_t event_id, pad;
};

struct kfd_wait_events {
    uint64_t events_ptr;
    uint32_t num_events, wait_for_all, timeout, wait_result;
};

#define KFD_CREATE_QUEUE _IOWR('K', 0x02, struct kfd_create_queue)
#define KFD_CREATE_EVENT _IOWR('K', 0x08, struct kfd_create_event)
#define KFD_WAIT_EVENTS _IOWR('K', 0x0C, struct kfd_wait_events)
#define KFD_ACQUIRE_VM _IOW('K', 0x15, struct kfd_acquire_vm)
#define KFD_ALLOC _IOWR('K', 0x16, struct kfd_alloc)
#define KFD_MAP _IOWR('K', 0x18, struct kfd_map)

#endif
