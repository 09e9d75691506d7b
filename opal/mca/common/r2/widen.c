/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Lets the plain commands `mpirun --mca coll r2` and `--mca btl r2,self` select components of Open
 * MPI beside r2.
 *
 * Open MPI demands that the selected collective components together fill every collective of a
 * communicator, so r2 alone would end MPI_Init with "no collective components"; and that the
 * selected transports reach every process, spawned ones too. The components to add have to be on
 * the framework's list before it opens them. The last moment to put them there is the registration
 * of r2's parameters: Open MPI is walking the list then and takes what we append behind.
 */
#include "widen.h"

#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"
#include "opal/mca/base/mca_base_component_repository.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/util/argv.h"

/* Open MPI's list macros cast volatile away; unlike gcc, clang warns in the macros of system
 * headers. */
#ifdef __clang__
#    pragma clang diagnostic ignored "-Wcast-qual"
#endif

static bool r2_list_has(char *const *names, const char *name)
{
    for (; NULL != names && NULL != *names; ++names) {
        if (0 == strcmp(*names, name)) {
            return true;
        }
    }
    return false;
}

static bool r2_component_is_loaded(mca_base_framework_t *framework, const char *name)
{
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH(item, &framework->framework_components, mca_base_component_list_item_t) {
        if (0 == strcmp(item->cli_component->mca_component_name, name)) {
            return true;
        }
    }
    return false;
}

/* Of those built into Open MPI the one at `idx`; NULL: there are no more. Since 6 the list has the
 * addresses of pointers to components, which lie anywhere. */
static const mca_base_component_t *r2_static_component(const mca_base_framework_t *framework,
                                                       size_t idx)
{
#if OPAL_MAJOR_VERSION >= 6
    const mca_base_component_t ***list = framework->framework_static_components;

    return NULL == list || NULL == list[idx] ? NULL : *list[idx];
#else
    const mca_base_component_t **list = framework->framework_static_components;

    return NULL == list ? NULL : list[idx];
#endif
}

/* Naming a component that does not exist makes Open MPI abort: ask first. */
static bool r2_component_is_available(mca_base_framework_t *framework, const char *name)
{
    const mca_base_component_t *fixed;
    opal_list_t *found = NULL;
    mca_base_component_repository_item_t *item;

    for (size_t i = 0; NULL != (fixed = r2_static_component(framework, i)); ++i) {
        if (0 == strcmp(fixed->mca_component_name, name)) {
            return true;
        }
    }
    if (OPAL_SUCCESS != mca_base_component_repository_get_components(framework, &found) ||
        NULL == found) {
        return false;
    }
    OPAL_LIST_FOREACH(item, found, mca_base_component_repository_item_t) {
        if (0 == strcmp(item->ri_name, name)) {
            return true;
        }
    }
    return false;
}

/* Appends the components of `names` to the framework's list, unregistered. */
static int r2_components_append(mca_base_framework_t *framework, char **names)
{
    char *selection = framework->framework_selection;
    char *joined = opal_argv_join(names, ',');
    int rc;

    if (NULL == joined) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    framework->framework_selection = joined;
    rc = mca_base_component_find(NULL, framework, false, true);
    framework->framework_selection = selection;
    free(joined);
    return rc;
}

/* True if nothing but the components of `appended` follows r2 on the framework's list. */
static bool r2_was_last(mca_base_framework_t *framework, char *const *appended)
{
    mca_base_component_list_item_t *item;
    bool after_r2 = false;

    OPAL_LIST_FOREACH(item, &framework->framework_components, mca_base_component_list_item_t) {
        const char *name = item->cli_component->mca_component_name;

        if (0 == strcmp(name, "r2")) {
            after_r2 = true;
        } else if (after_r2 && !r2_list_has(appended, name)) {
            return false;
        }
    }
    return true;
}

/*
 * Registers the components of `names`, and drops those that fail, as Open MPI's own loop does. That
 * loop has read its next item before it called r2: with r2 last it ends without seeing the new
 * ones.
 */
static void r2_components_register(mca_base_framework_t *framework, char *const *names)
{
    mca_base_component_list_item_t *item;
    mca_base_component_list_item_t *next;

    OPAL_LIST_FOREACH_SAFE(item, next, &framework->framework_components,
                           mca_base_component_list_item_t) {
        const mca_base_component_t *component = item->cli_component;

        if (!r2_list_has(names, component->mca_component_name) ||
            NULL == component->mca_register_component_params ||
            OPAL_SUCCESS == component->mca_register_component_params()) {
            continue;
        }
        opal_list_remove_item(&framework->framework_components, &item->super);
        OBJ_RELEASE(item);
    }
}

/* What opens and selects components later reads the variable, not the list: all are named there. */
static int r2_selection_set(const mca_base_framework_t *framework, char **names)
{
    int var_idx =
        mca_base_var_find(framework->framework_project, framework->framework_name, NULL, NULL);
    char *joined = opal_argv_join(names, ',');
    int rc;

    if (NULL == joined) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rc = mca_base_var_set_value(var_idx, joined, strlen(joined) + 1, MCA_BASE_VAR_SOURCE_OVERRIDE,
                                NULL);
    free(joined);
    return rc;
}

/* Splits `fallback` into what is to be loaded, and appends all that is usable to `selected`. */
static void r2_fallback_split(mca_base_framework_t *framework, const char *fallback,
                              char ***selected_p, char ***load_p)
{
    char **wanted = opal_argv_split(fallback, ',');

    for (char **name = wanted; NULL != name && NULL != *name; ++name) {
        bool is_loaded = r2_component_is_loaded(framework, *name);

        if (r2_list_has(*selected_p, *name) ||
            (!is_loaded && !r2_component_is_available(framework, *name))) {
            continue;
        }
        opal_argv_append_nosize(selected_p, *name);
        if (!is_loaded) {
            opal_argv_append_nosize(load_p, *name);
        }
    }
    opal_argv_free(wanted);
}

bool mca_common_r2_is_named(const mca_base_framework_t *framework)
{
    const char *selection = framework->framework_selection;
    char **names;
    bool found;

    /* A list that begins with '^' tells what to leave out. */
    if (NULL == selection || '^' == selection[0]) {
        return false;
    }
    names = opal_argv_split(selection, ',');
    found = r2_list_has(names, "r2");
    opal_argv_free(names);
    return found;
}

int mca_common_r2_widen(mca_base_framework_t *framework, const char *fallback)
{
    char **selected;
    char **load = NULL;
    int rc = OPAL_SUCCESS;

    /* Else Open MPI loads the others by itself; and ompi_info loads r2 whatever is selected. */
    if (!mca_common_r2_is_named(framework) || NULL == fallback) {
        return OPAL_SUCCESS;
    }
    selected = opal_argv_split(framework->framework_selection, ',');
    r2_fallback_split(framework, fallback, &selected, &load);
    if (NULL != load) {
        rc = r2_components_append(framework, load);
        if (OPAL_SUCCESS != rc) {
            goto out;
        }
        if (r2_was_last(framework, load)) {
            r2_components_register(framework, load);
        }
    }
    rc = r2_selection_set(framework, selected);
out:
    opal_argv_free(load);
    opal_argv_free(selected);
    return rc;
}
