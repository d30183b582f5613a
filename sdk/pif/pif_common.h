/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PIF_COMMON_H
#define PIF_COMMON_H

#include <pif_plugin.h>

#endif
