/* A compute client with nothing between it and the driver: open, ioctl, mmap, PM4 packets by hand.
 *
 *     kfd_dispatch JOB OUT [WAIT_MS]
 *
 * JOB says which memory to set up at which GPU addresses and what the dispatch registers hold (struct
 * job, then each segment's head and bytes). The program uploads it, submits one dispatch with a fence
 * and an event, waits, and writes every segment's bytes to OUT. Exit code: 0 done, 2 a memory exception,
 * 3 a hardware exception, 4 time-out, 1 anything else.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kfd_abi.h"

#define MAGIC 0x424F4A544E555453ull /* "STUNTJOB" */
#define PAGE 4096ull

struct job {
    uint64_t magic, entry, scratch;
    uint32_t n_segments, initiator, rsrc1, rsrc2, rsrc3, tmpring;
    uint32_t dims[3], start[3], threads[3], n_user, user[16];
};

struct segment {
    uint64_t va, size;
    uint32_t executable, pad;
};

static int kfd, render;
static uint32_t gpu_id;

static void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static void call(unsigned long request, void *args, const char *name)
{
    if (ioctl(kfd, request, args))
        die(name);
}

static void open_gpu(void)
{
    FILE *file = fopen("/sys/devices/virtual/kfd/kfd/topology/nodes/1/gpu_id", "r");
    if (!file || fscanf(file, "%u", &gpu_id) != 1)
        die("gpu_id");
    fclose(file);
    kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
    render = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
    if (kfd < 0 || render < 0)
        die("open");
    struct kfd_acquire_vm vm = {(uint32_t)render, gpu_id};
    call(KFD_ACQUIRE_VM, &vm, "ACQUIRE_VM");
}

/* Memory at one address for GPU and CPU; va 0: wherever the CPU has room. */
static void *allocate(uint64_t va, uint64_t size, uint32_t flags, uint64_t *handle)
{
    size = (size + PAGE - 1) & ~(PAGE - 1);
    if (!va) {
        void *room = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (room == MAP_FAILED)
            die("reserve");
        va = (uint64_t)room;
    }
    struct kfd_alloc a = {.va_addr = va, .size = size, .gpu_id = gpu_id, .flags = flags};
    call(KFD_ALLOC, &a, "ALLOC_MEMORY_OF_GPU");
    struct kfd_map m = {.handle = a.handle, .device_ids_array_ptr = (uint64_t)&gpu_id, .n_devices = 1};
    call(KFD_MAP, &m, "MAP_MEMORY_TO_GPU");
    if (m.n_success != 1)
        die("n_success");
    void *at = mmap((void *)va, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, render, (off_t)a.mmap_offset);
    if (at == MAP_FAILED)
        die("mmap");
    if (handle)
        *handle = a.handle;
    return at;
}

struct queue {
    uint32_t *ring;
    uint64_t *pointers; /* [0] read, [8] write */
    volatile uint64_t *doorbell;
    uint64_t size_dw, wptr;
};

static struct queue create_queue(void)
{
    struct queue q = {.size_dw = 0x4000};
    q.ring = allocate(0, q.size_dw * 4, GTT, NULL);
    q.pointers = allocate(0, PAGE, GTT, NULL);
    struct kfd_create_queue c = {
        .ring_base_address = (uint64_t)q.ring, .ring_size = (uint32_t)(q.size_dw * 4), .gpu_id = gpu_id,
        .read_pointer_address = (uint64_t)&q.pointers[0], .write_pointer_address = (uint64_t)&q.pointers[8],
        .queue_percentage = 100, .queue_priority = 7,
        .eop_buffer_address = (uint64_t)allocate(0, PAGE, VRAM, NULL), .eop_buffer_size = PAGE,
    };
    call(KFD_CREATE_QUEUE, &c, "CREATE_QUEUE");
    char *page = mmap(NULL, 0x2000, PROT_READ | PROT_WRITE, MAP_SHARED, kfd, (off_t)(c.doorbell_offset & ~0x1FFFull));
    if (page == MAP_FAILED)
        die("doorbell");
    q.doorbell = (volatile uint64_t *)(page + (c.doorbell_offset & 0x1FFF));
    return q;
}

static void put(struct queue *q, uint32_t word)
{
    q->ring[q->wptr++ % q->size_dw] = word;
}

static void packet(struct queue *q, uint32_t opcode, const uint32_t *body, uint32_t n)
{
    put(q, 3u << 30 | (n - 1) << 16 | opcode << 8);
    for (uint32_t i = 0; i < n; i++)
        put(q, body[i]);
}

static void set_registers(struct queue *q, uint32_t offset, const uint32_t *values, uint32_t n)
{
    uint32_t body[32] = {offset};
    memcpy(body + 1, values, n * 4);
    packet(q, 0x76 /* SET_SH_REG */, body, n + 1);
}

#define LO(v) ((uint32_t)(v))
#define HI(v) ((uint32_t)((uint64_t)(v) >> 32))
#define SET(q, offset, ...) \
    set_registers(q, offset, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

/* End of pipe: write 64 bits of data, and interrupt when `event` is not 0. */
static void release(struct queue *q, uint64_t address, uint64_t data, uint32_t event)
{
    uint32_t body[] = {0x14u | 5u << 8, 2u << 29 | (event ? 2u << 24 : 0), LO(address), HI(address), LO(data),
                       HI(data), event};
    packet(q, 0x49 /* RELEASE_MEM */, body, 7);
}

static void submit(struct queue *q, const struct job *job, uint64_t fence, uint64_t mailbox, uint32_t event)
{
    uint32_t acquire[] = {0, 0xFFFFFFFF, 0xFF, 0, 0, 0, 0x7FFFF};
    packet(q, 0x58 /* ACQUIRE_MEM */, acquire, 7);
    SET(q, 0x20C, LO(job->entry >> 8), HI(job->entry >> 8));         /* COMPUTE_PGM_LO, HI */
    SET(q, 0x212, job->rsrc1, job->rsrc2);                           /* COMPUTE_PGM_RSRC1, 2 */
    SET(q, 0x228, job->rsrc3);                                       /* COMPUTE_PGM_RSRC3 */
    SET(q, 0x218, job->tmpring);                                     /* COMPUTE_TMPRING_SIZE */
    SET(q, 0x210, LO(job->scratch >> 8), HI(job->scratch >> 8));     /* COMPUTE_DISPATCH_SCRATCH_BASE */
    SET(q, 0x215, 0);                                                /* COMPUTE_RESOURCE_LIMITS */
    SET(q, 0x204, job->start[0], job->start[1], job->start[2], job->threads[0], job->threads[1], job->threads[2]); /* START, NUM_THREAD */
    if (job->n_user)
        set_registers(q, 0x240, job->user, job->n_user);             /* COMPUTE_USER_DATA_0.. */
    uint32_t dispatch[] = {job->dims[0], job->dims[1], job->dims[2], job->initiator};
    packet(q, 0x15 /* DISPATCH_DIRECT */, dispatch, 4);
    release(q, fence, 1, 0);
    release(q, mailbox, event, event);
    q->pointers[8] = q->wptr;
    __atomic_store_n((uint64_t *)q->doorbell, q->wptr, __ATOMIC_RELEASE);
}

static uint32_t create_event(uint32_t type, uint64_t page)
{
    struct kfd_create_event e = {.event_page_offset = page, .event_type = type, .auto_reset = 1};
    call(KFD_CREATE_EVENT, &e, "CREATE_EVENT");
    return e.event_id;
}

/* Exit code of the wait. */
static int wait_for(uint32_t signal, uint32_t memory, uint32_t hardware, uint32_t ms)
{
    struct kfd_event_data data[3] = {{.event_id = signal}, {.event_id = memory}, {.event_id = hardware}};
    struct kfd_wait_events w = {.events_ptr = (uint64_t)data, .num_events = 3, .timeout = ms};
    call(KFD_WAIT_EVENTS, &w, "WAIT_EVENTS");
    if (w.wait_result)
        return 4;
    if (data[1].payload.memory.gpu_id) {
        printf("memory exception at 0x%lx: not present %u, read only %u, no execute %u\n",
               data[1].payload.memory.va, data[1].payload.memory.NotPresent, data[1].payload.memory.ReadOnly,
               data[1].payload.memory.NoExecute);
        return 2;
    }
    if (data[2].payload.hw.gpu_id) {
        printf("hardware exception: reset type %u cause %u\n", data[2].payload.hw.reset_type,
               data[2].payload.hw.reset_cause);
        return 3;
    }
    return 0;
}

static void *load_segments(FILE *file, const struct job *job, struct segment *all, void **at)
{
    for (uint32_t i = 0; i < job->n_segments; i++) {
        if (fread(&all[i], sizeof all[i], 1, file) != 1)
            die("segment");
        at[i] = allocate(all[i].va, all[i].size, VRAM | PUBLIC | WRITABLE | EXECUTABLE, NULL);
        if (fread(at[i], 1, all[i].size, file) != all[i].size)
            die("segment bytes");
    }
    return at;
}

int main(int argc, char **argv)
{
    struct job job;
    if (argc < 3)
        return 1;
    FILE *file = fopen(argv[1], "rb");
    if (!file || fread(&job, sizeof job, 1, file) != 1 || job.magic != MAGIC || job.n_user > 16)
        die("job");
    struct segment *all = calloc(job.n_segments, sizeof *all);
    void **at = calloc(job.n_segments, sizeof *at);
    open_gpu();
    load_segments(file, &job, all, at);
    fclose(file);

    uint64_t page_handle;
    volatile uint64_t *fence = allocate(0, PAGE, GTT, NULL);
    uint64_t *mailboxes = allocate(0, 0x8000, GTT, &page_handle);
    uint32_t signal = create_event(0, page_handle), memory = create_event(8, 0), hardware = create_event(3, 0);
    struct queue q = create_queue();
    submit(&q, &job, (uint64_t)fence, (uint64_t)&mailboxes[signal], signal);
    int code = wait_for(signal, memory, hardware, argc > 3 ? (uint32_t)atoi(argv[3]) : 60000);
    if (code)
        return code;
    if (*fence != 1) {
        fprintf(stderr, "the event came before the fence\n");
        return 1;
    }
    file = fopen(argv[2], "wb");
    for (uint32_t i = 0; file && i < job.n_segments; i++)
        if (fwrite(at[i], 1, all[i].size, file) != all[i].size)
            die("out");
    return file && fclose(file) == 0 ? 0 : 1;
}
