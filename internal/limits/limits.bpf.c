// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

#include "../../bpf/namespaces.h"

/* What Go takes from BTF. */
const enum ln_limit *ln_limit_ __attribute__((unused));
const enum ln_rate_of *ln_rate_of_ __attribute__((unused));
const enum ln_resource *ln_resource_ __attribute__((unused));
const enum ln_share *ln_share_ __attribute__((unused));
const enum ln_network *ln_network_ __attribute__((unused));
const enum ln_refusals_of *ln_refusals_of_ __attribute__((unused));

char LICENSE[] SEC("license") = "Dual BSD/GPL";
