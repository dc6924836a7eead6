#include "failure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dsec_protocol.gen.h"

static const struct {
	int errno_value;
	const char *code;
} codes[] = {
	{ ENOENT, DSEC_ERROR_NOT_FOUND },	  { EACCES, DSEC_ERROR_PERMISSION_DENIED },
	{ EPERM, DSEC_ERROR_PERMISSION_DENIED },  { EROFS, DSEC_ERROR_PERMISSION_DENIED },
	{ EEXIST, DSEC_ERROR_ALREADY_EXISTS },	  { EINVAL, DSEC_ERROR_INVALID_ARGUMENT },
	{ ENOTDIR, DSEC_ERROR_INVALID_ARGUMENT }, { EISDIR, DSEC_ERROR_INVALID_ARGUMENT },
	{ ELOOP, DSEC_ERROR_INVALID_ARGUMENT },	  { ENAMETOOLONG, DSEC_ERROR_INVALID_ARGUMENT },
	{ ENOEXEC, DSEC_ERROR_INVALID_ARGUMENT }, { ENOTEMPTY, DSEC_ERROR_STATE_CONFLICT },
	{ EBUSY, DSEC_ERROR_STATE_CONFLICT },	  { ETXTBSY, DSEC_ERROR_STATE_CONFLICT },
	{ ENOSPC, DSEC_ERROR_STORAGE_FULL },	  { EDQUOT, DSEC_ERROR_STORAGE_FULL },
	{ EFBIG, DSEC_ERROR_TOO_LARGE },	  { E2BIG, DSEC_ERROR_TOO_LARGE },
	{ EAGAIN, DSEC_ERROR_OVERLOADED },	  { ENOMEM, DSEC_ERROR_OVERLOADED },
	{ EMFILE, DSEC_ERROR_OVERLOADED },	  { ENFILE, DSEC_ERROR_OVERLOADED },
	{ ENOBUFS, DSEC_ERROR_OVERLOADED },	  { EXDEV, DSEC_ERROR_UNSUPPORTED },
	{ EOPNOTSUPP, DSEC_ERROR_UNSUPPORTED },	  { ECONNREFUSED, DSEC_ERROR_UNAVAILABLE },
	{ ECONNRESET, DSEC_ERROR_UNAVAILABLE },	  { EPIPE, DSEC_ERROR_UNAVAILABLE },
	{ ECANCELED, DSEC_ERROR_CANCELLED },	  { ETIMEDOUT, DSEC_ERROR_DEADLINE_EXCEEDED },
};

static const char *const step_names[STEPS] = {
	[STEP_MEMORY] = "the command's texts",
	[STEP_USER] = "no such user or group",
	[STEP_KEEPER] = "set-up of the supervisor",
	[STEP_FORK] = "fork",
	[STEP_DESCRIPTORS] = "descriptors",
	[STEP_TERMINAL] = "terminal",
	[STEP_IDENTITY] = "change of user",
	[STEP_LIMITS] = "limits",
	[STEP_DIRECTORY] = "working directory",
	[STEP_RULES] = "rules of the policy",
	[STEP_COMMAND] = "command",
};

const char *failure_code(int errno_value)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		if (codes[i].errno_value == errno_value)
			return codes[i].code;
	}
	return DSEC_ERROR_INTERNAL;
}

const char *failure_start_code(const struct start_failure *failure)
{
	if (failure->step == STEP_COMMAND &&
	    (failure->error == ENOENT || failure->error == ENOTDIR))
		return DSEC_ERROR_COMMAND_NOT_FOUND;
	return failure_code(failure->error);
}

void failure_start_message(const struct start_failure *failure, char *text, size_t size)
{
	bool known = failure->step >= 0 && failure->step < STEPS;

	snprintf(text, size, "%s: %s", known ? step_names[failure->step] : "start",
		 strerror(failure->error));
}
