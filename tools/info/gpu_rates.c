/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2_info --gpu-rates: how fast a GPU copies, and reduces by r2's kernels.
 */
#include "r2_config.h"

#include <stdio.h>

#include "info/info.h"
#include "r2/gpu_rates.h"
#include "r2/json.h"

static double share_of(uint64_t rate, uint64_t of)
{
    return 0 == of ? 0 : (double) rate / (double) of;
}

static int print_json(const r2_gpu_rates_t *rates, int device, size_t bytes, const char *why,
                      FILE *out)
{
    r2_json_t json;

    r2_json_init_file(&json, out);
    r2_json_open(&json, NULL, '{');
    r2_json_u64(&json, "device", (uint64_t) device);
    r2_json_u64(&json, "bytes", bytes);
    r2_json_u64(&json, "copy_inside", rates->copy_inside);
    r2_json_u64(&json, "copy_on", rates->copy_on);
    r2_json_u64(&json, "copy_off", rates->copy_off);
    r2_json_u64(&json, "sum_float", rates->sum_float);
    r2_json_u64(&json, "sum_bfloat16", rates->sum_bfloat16);
    r2_json_string(&json, "kernels", '\0' == *why ? NULL : why);
    r2_json_close(&json, '}');
    return R2_OK == r2_json_end_file(&json) ? 0 : -1;
}

static int print_text(const r2_gpu_rates_t *rates, int device, size_t bytes, const char *why,
                      FILE *out)
{
    const struct {
        const char *name;
        uint64_t rate;
        bool is_kernel;
    } rows[] = {{"copies inside the device", rates->copy_inside, false},
                {"copies onto it, from pinned memory", rates->copy_on, false},
                {"copies off it", rates->copy_off, false},
                {"sums of float", rates->sum_float, true},
                {"sums of bfloat16", rates->sum_bfloat16, true}};

    fprintf(out, "GPU %d, buffers of %zu bytes: bytes read and written per second\n", device,
            bytes);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        fprintf(out, "  %-36s %10.2f GB/s", rows[i].name, (double) rows[i].rate / 1e9);
        if (rows[i].is_kernel) {
            fprintf(out, "  %.2f of copies inside", share_of(rows[i].rate, rates->copy_inside));
        }
        fputc('\n', out);
    }
    if ('\0' != *why) {
        fprintf(out, "kernels: %s\n", why);
    }
    return 0;
}

int info_gpu_rates(int device, size_t bytes, bool json, FILE *out)
{
    r2_gpu_rates_t rates;
    char why[256];
    const r2_status_t status = r2_gpu_measure(device, bytes, &rates, why, sizeof(why));

    if (R2_OK != status) {
        fprintf(stderr, "r2_info: GPU %d cannot be measured: %s%s%s\n", device,
                r2_status_string(status), '\0' == *why ? "" : ": ", why);
        return -1;
    }
    return (json ? print_json : print_text)(&rates, device, bytes, why, out);
}
