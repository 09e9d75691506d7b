/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Preloaded: the UCX that is loaded says of itself that it is one that nobody has seen.
 */
void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release);
const char *ucp_get_version_string(void);

__attribute__((visibility("default"))) void ucp_get_version(unsigned *major, unsigned *minor,
                                                            unsigned *release)
{
    *major = 1;
    *minor = 99;
    *release = 7;
}

__attribute__((visibility("default"))) const char *ucp_get_version_string(void)
{
    return "1.99.7";
}
