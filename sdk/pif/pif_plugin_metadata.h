/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The metadata's accessors, pif_plugin_meta_get__METADATA__FIELD() and _set, are made with the program's headers. */
#ifndef PIF_PLUGIN_METADATA_H
#define PIF_PLUGIN_METADATA_H

#include <pif_plugin.h>

#endif
