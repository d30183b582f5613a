// SPDX-License-Identifier: Apache-2.0
#include "internal.h"

#define FAILED "the lambda failed on this request"
#define SEE ": see `lambdanic describe NAME`"

const char *lambdanic_strerror(int result)
{
	switch (result) {
	case LAMBDANIC_OK:
		return "success";
	case LAMBDANIC_DEADLINE:
		return "no answer in time";
	case LAMBDANIC_REQUEST_TOO_LARGE:
		return "request too large: split it";
	case LAMBDANIC_REPLY_TOO_LARGE:
		return "reply too large: raise max_reply";
	case LAMBDANIC_SYSTEM:
		return "a system call failed";
	case LAMBDANIC_BAD_ADDRESS:
		return "no such host: give HOST, HOST:PORT or [IPv6]:PORT";
	case LAMBDANIC_NO_FUNCTION:
		return "the gateway knows no function of that name";
	case LAMBDANIC_GATEWAY:
		return "the gateway refused, or is none: check its address and the credentials";
	case LAMBDANIC_BAD_ARGUMENT:
		return "a pointer or a name is missing, or a length cannot be";
	case LAMBDANIC_NO_DAEMON:
		return "the daemon of this machine does not answer: start it with `lambdanic up -d`, and ask as root";
	case LAMBDANIC_REFUSED:
		return "the daemon refused";
	case LAMBDANIC_DIFFERS:
		return "a register has another value than the transaction expects";
	case LAMBDANIC_NO_REGISTER:
		return "the ikernel has no register of that name";
	case LAMBDANIC_FULL:
		return "there is no room for the note: deliver those before";
	case LAMBDANIC_FAULTED:
		return "the ikernel has faulted: ask lambdanic_ikernel_fault() why, and create another";
	case LAMBDANIC_NO_SHARD:
		return "not a group's parity and all others: read them from the rings of parity";
	case LAMBDANIC_BAD_KEY:
		return "not a key: it is one line, lnk1:NAMESPACE:NUMBER:SECRET, as `lambdanic namespace key add` "
		       "writes it";
	case LN_CODE_UNKNOWN_WORKLOAD:
		return "unknown workload: look the lambda's name up again";
	case LN_CODE_OVER_QUOTA:
		return "over quota: slow down";
	case LN_CODE_BAD_TAG:
		return "bad tag: check the namespace's key";
	case LN_CODE_MALFORMED:
		return "malformed packet";
	case LN_CODE_LAMBDA_FAULT:
		return FAILED SEE;
	case LN_CODE_TOO_LARGE:
		return "request or reply too large";
	case LN_CODE_BUSY:
		return "busy: try again later";
	case LN_CODE_TIMEOUT:
		return "an external service did not answer in time";
	case LN_CODE_UNREACHABLE:
		return "an external service cannot be reached";
	case LN_CODE_STALE:
		return "the revision or reply is gone: start over";
	case LN_CODE_DEADLINE:
		return "the deadline was over before the lambda could answer";
	}
	return "unknown reason";
}

const char *lambdanic_reply_error(const struct lambdanic_reply *reply)
{
	if (!reply)
		return lambdanic_strerror(LAMBDANIC_BAD_ARGUMENT);
	if (reply->result != LN_CODE_LAMBDA_FAULT)
		return lambdanic_strerror(reply->result);
	switch (reply->fault) {
	case LN_FAULT_OWN:
		return FAILED
			": the lambda gave the request up: RETURN_FAULT, abort(), or a reply that does not fit" SEE;
	case LN_FAULT_TIME:
		return FAILED ": it ran longer than limits.time" SEE;
	case LN_FAULT_BOUNDS:
		return FAILED ": it used an address outside of its memory" SEE;
	case LN_FAULT_RECURSION:
		return FAILED ": it called itself too deep" SEE;
	case LN_FAULT_MEMORY:
		return FAILED ": it asked for more memory than there is" SEE;
	case LN_FAULT_DIVISION:
		return FAILED ": it divided by zero" SEE;
	case LN_FAULT_CRASH:
		return FAILED ": its process died" SEE;
	}
	return lambdanic_strerror(reply->result);
}
