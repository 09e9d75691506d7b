/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Streams, events and copies in virtual time.
 */
#include "r2_config.h"

#include "doubles/gpu_sim.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/util.h"

#define NESTED_MAX 4 /* contexts that are current one inside the other */

typedef struct copy {
    struct copy *next;
    void *to;
    const void *from;
    size_t bytes;
    uint64_t end_ns;
} copy_t;

struct r2_cu_stream {
    struct r2_cu_stream *next;
    r2_gpu_sim_t *gpu; /* borrowed */
    copy_t *copies;    /* owned list: not where they belong yet, oldest first */
    copy_t **tail;
    uint64_t end_ns; /* of the newest */
};

struct r2_cu_event {
    struct r2_cu_stream *stream; /* borrowed; NULL: nothing to wait for */
    uint64_t end_ns;
};

/* Its context is the GPU. */
struct r2_gpu_sim {
    const r2_clock_t *clock; /* borrowed */
    uint64_t bytes_per_s;
    struct r2_cu_stream *streams; /* owned list */
};

static r2_gpu_sim_stats_t stats;
static r2_gpu_sim_t *current[NESTED_MAX];
static int nested;

r2_gpu_sim_t *r2_gpu_sim_create(const r2_clock_t *clock, uint64_t bytes_per_s)
{
    r2_gpu_sim_t *gpu = calloc(1, sizeof(*gpu));

    if (NULL != gpu) {
        gpu->clock = clock;
        gpu->bytes_per_s = bytes_per_s;
    }
    return gpu;
}

void r2_gpu_sim_destroy(r2_gpu_sim_t *gpu)
{
    r2_assert(NULL == gpu || NULL == gpu->streams);
    free(gpu);
}

r2_mem_at_t r2_gpu_sim_memory(r2_gpu_sim_t *gpu)
{
    return (r2_mem_at_t){R2_MEM_DEVICE, 0, (struct r2_cu_context *) (void *) gpu};
}

uint64_t r2_gpu_sim_deadline_ns(const r2_gpu_sim_t *gpu)
{
    const uint64_t now_ns = r2_now_ns(gpu->clock);
    const struct r2_cu_stream *stream;
    uint64_t deadline_ns = R2_NEVER_NS;

    LL_FOREACH(gpu->streams, stream) {
        const copy_t *copy = stream->copies;

        while (NULL != copy && copy->end_ns <= now_ns) { /* nobody has asked yet */
            copy = copy->next;
        }
        deadline_ns = NULL == copy ? deadline_ns : r2_min(deadline_ns, copy->end_ns);
    }
    return deadline_ns;
}

r2_gpu_sim_stats_t r2_gpu_sim_stats(void)
{
    return stats;
}

/* Copies that have ended by then are where they belong. */
static void arrive(struct r2_cu_stream *stream, uint64_t time_ns)
{
    while (NULL != stream->copies && stream->copies->end_ns <= time_ns) {
        copy_t *copy = stream->copies;

        memmove(copy->to, copy->from, copy->bytes);
        stream->copies = copy->next;
        free(copy);
    }
    stream->tail = NULL == stream->copies ? &stream->copies : stream->tail;
}

/* ---- the driver ---- */

static r2_cu_result_t version(int *version_p)
{
    *version_p = 12000;
    return R2_CU_OK;
}

static r2_cu_result_t error_name(r2_cu_result_t error, const char **name_p)
{
    (void) error;
    *name_p = "an error of the simulator's GPU";
    return R2_CU_OK;
}

/* All memory is one allocation. What kind it is nobody asks here. */
static r2_cu_result_t pointer_attributes(unsigned count, r2_cu_attribute_t *which, void **data_p,
                                         r2_cu_at_t at)
{
    const uint64_t id = 1, start = 0;
    const size_t bytes = SIZE_MAX;
    const int yes = 1;

    (void) at;
    for (unsigned i = 0; i < count; ++i) {
        switch (which[i]) {
        case R2_CU_ATTRIBUTE_BUFFER_ID:
            memcpy(data_p[i], &id, sizeof(id));
            break;
        case R2_CU_ATTRIBUTE_RANGE_START:
            memcpy(data_p[i], &start, sizeof(start));
            break;
        case R2_CU_ATTRIBUTE_RANGE_BYTES:
            memcpy(data_p[i], &bytes, sizeof(bytes));
            break;
        case R2_CU_ATTRIBUTE_IS_IPC_CAPABLE:
            memcpy(data_p[i], &yes, sizeof(yes));
            break;
        default:
            return R2_CU_INVALID_VALUE;
        }
    }
    return R2_CU_OK;
}

static r2_cu_result_t push(r2_cu_context_t context)
{
    if (NESTED_MAX == nested) {
        return R2_CU_INVALID_VALUE;
    }
    current[nested++] = (r2_gpu_sim_t *) (void *) context;
    return R2_CU_OK;
}

static r2_cu_result_t pop(r2_cu_context_t *context_p)
{
    *context_p = (r2_cu_context_t) (void *) current[--nested];
    return R2_CU_OK;
}

/* Memory has contexts here. */
static r2_cu_result_t retain(r2_cu_context_t *context_p, r2_cu_device_t device)
{
    (void) context_p, (void) device;
    return R2_CU_INVALID_VALUE;
}

static r2_cu_result_t release(r2_cu_device_t device)
{
    (void) device;
    return R2_CU_INVALID_VALUE;
}

static r2_cu_result_t pin(void **at_p, size_t bytes, unsigned flags)
{
    (void) flags;
    *at_p = aligned_alloc(4096, bytes);
    return NULL == *at_p ? R2_CU_NO_MEMORY : R2_CU_OK;
}

static r2_cu_result_t device_alloc(r2_cu_at_t *at_p, size_t bytes)
{
    void *at = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

    *at_p = (uintptr_t) at;
    return NULL == at ? R2_CU_NO_MEMORY : R2_CU_OK;
}

static r2_cu_result_t device_free(r2_cu_at_t at)
{
    free((void *) (uintptr_t) at);
    return R2_CU_OK;
}

static r2_cu_result_t unpin(void *at)
{
    free(at);
    return R2_CU_OK;
}

static r2_cu_result_t stream_create(r2_cu_stream_t *stream_p, unsigned flags)
{
    struct r2_cu_stream *stream = calloc(1, sizeof(*stream));

    (void) flags;
    if (NULL == stream) {
        return R2_CU_NO_MEMORY;
    }
    stream->gpu = current[nested - 1];
    stream->tail = &stream->copies;
    LL_PREPEND(stream->gpu->streams, stream);
    *stream_p = stream;
    return R2_CU_OK;
}

/* Who waits takes no time: the clock is not ours. */
static r2_cu_result_t stream_sync(r2_cu_stream_t stream)
{
    arrive(stream, R2_NEVER_NS);
    return R2_CU_OK;
}

static r2_cu_result_t stream_destroy(r2_cu_stream_t stream)
{
    arrive(stream, R2_NEVER_NS);
    LL_DELETE(stream->gpu->streams, stream);
    free(stream);
    return R2_CU_OK;
}

static r2_cu_result_t stream_wait(r2_cu_stream_t stream, r2_cu_event_t event, unsigned flags)
{
    (void) flags;
    stream->end_ns = r2_max(stream->end_ns, event->end_ns);
    return R2_CU_OK;
}

static r2_cu_result_t event_create(r2_cu_event_t *event_p, unsigned flags)
{
    (void) flags;
    *event_p = calloc(1, sizeof(**event_p));
    return NULL == *event_p ? R2_CU_NO_MEMORY : R2_CU_OK;
}

static r2_cu_result_t event_destroy(r2_cu_event_t event)
{
    free(event);
    return R2_CU_OK;
}

/* The application has nothing under way in its own stream. */
static r2_cu_result_t event_record(r2_cu_event_t event, r2_cu_stream_t stream)
{
    event->stream = stream;
    event->end_ns = NULL == stream ? 0 : stream->end_ns;
    return R2_CU_OK;
}

static r2_cu_result_t event_query(r2_cu_event_t event)
{
    const uint64_t now_ns = NULL == event->stream ? 0 : r2_now_ns(event->stream->gpu->clock);

    if (NULL != event->stream) {
        arrive(event->stream, now_ns);
    }
    return event->end_ns <= now_ns ? R2_CU_OK : R2_CU_NOT_READY;
}

static r2_cu_result_t copy(r2_cu_at_t to, r2_cu_at_t from, size_t bytes, r2_cu_stream_t stream)
{
    copy_t *copy = calloc(1, sizeof(*copy));
    const uint64_t now_ns = r2_now_ns(stream->gpu->clock);

    if (NULL == copy) {
        return R2_CU_NO_MEMORY;
    }
    stream->end_ns = r2_max(stream->end_ns, now_ns) +
                     (uint64_t) ((double) bytes * 1e9 / (double) stream->gpu->bytes_per_s);
    *copy = (copy_t){.to = (void *) (uintptr_t) to,
                     .from = (const void *) (uintptr_t) from,
                     .bytes = bytes,
                     .end_ns = stream->end_ns};
    *stream->tail = copy;
    stream->tail = &copy->next;
    ++stats.copies;
    stats.bytes += bytes;
    return R2_CU_OK;
}

/* Takes as long as its bytes, and counts as one. */
static r2_cu_result_t copy_rows(const r2_cu_copy2d_t *what, r2_cu_stream_t stream)
{
    r2_cu_result_t rc = R2_CU_OK;

    for (size_t row = 0; R2_CU_OK == rc && row < what->rows; ++row) {
        rc = copy(what->to + row * what->to_pitch_bytes, what->from + row * what->from_pitch_bytes,
                  what->row_bytes, stream);
    }
    stats.copies -= what->rows - 1;
    return rc;
}

/* It takes no kernels: processors reduce. */
static r2_cu_result_t module_load(r2_cu_module_t *module_p, const void *text)
{
    (void) module_p, (void) text;
    return R2_CU_INVALID_VALUE;
}

static r2_cu_result_t module_unload(r2_cu_module_t module)
{
    (void) module;
    return R2_CU_INVALID_VALUE;
}

static r2_cu_result_t module_function(r2_cu_function_t *function_p, r2_cu_module_t module,
                                      const char *name)
{
    (void) function_p, (void) module, (void) name;
    return R2_CU_INVALID_VALUE;
}

static r2_cu_result_t launch(r2_cu_function_t function, unsigned grid_x, unsigned grid_y,
                             unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                             unsigned shared_bytes, r2_cu_stream_t stream, void **params,
                             void **extra)
{
    (void) function, (void) grid_x, (void) grid_y, (void) grid_z, (void) block_x, (void) block_y;
    (void) block_z, (void) shared_bytes, (void) stream, (void) params, (void) extra;
    return R2_CU_INVALID_VALUE;
}

/* Memory of one process. */
static r2_cu_result_t ipc_get(r2_cu_ipc_t *handle_p, r2_cu_at_t at)
{
    (void) handle_p, (void) at;
    return R2_CU_INVALID_VALUE;
}

static r2_cu_result_t ipc_open(r2_cu_at_t *at_p, r2_cu_ipc_t handle, unsigned flags)
{
    (void) at_p, (void) handle, (void) flags;
    return R2_CU_INVALID_VALUE;
}

static r2_cu_result_t ipc_close(r2_cu_at_t at)
{
    (void) at;
    return R2_CU_INVALID_VALUE;
}

static r2_cu_result_t device_attribute(int *value_p, r2_cu_device_attribute_t which,
                                       r2_cu_device_t device)
{
    (void) device;
    *value_p = R2_CU_DEVICE_NIC_FLUSHES == which ? R2_CU_NIC_FLUSH_BY_HOST : 0;
    return R2_CU_OK;
}

static r2_cu_result_t flush_nics(r2_cu_nic_target_t target, r2_cu_nic_scope_t scope)
{
    (void) target, (void) scope;
    ++stats.flushes;
    return R2_CU_OK;
}

void r2_gpu_sim_driver(r2_cuda_driver_t *driver_p)
{
    *driver_p = (r2_cuda_driver_t){
        .library = dlopen(NULL, RTLD_NOW),
#define R2_CUDA_TYPE(ours, as, theirs)
#define R2_CUDA_VALUE(ours, value, theirs)
#define R2_CUDA_FN(field, symbol, params) .field = field,
#include "mem/cuda_api.def"
#undef R2_CUDA_TYPE
#undef R2_CUDA_VALUE
#undef R2_CUDA_FN
    };
}
