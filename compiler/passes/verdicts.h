// SPDX-License-Identifier: Apache-2.0
#ifndef LAMBDA_VERDICTS_H
#define LAMBDA_VERDICTS_H

// What a program returns, and the faults that it ends by, as the NIC program knows them.
#define LN_LAYOUT_NO_LOCKS
#include "../../bpf/layout.h"
#include "../../bpf/rpc_wire.h"

static_assert(LN_FAULT_OWN == 1 && LN_FAULT_CRASH < LN_FAULTS);

#endif
