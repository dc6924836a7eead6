#include "failure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dsec_protocol.gen.h"

const char *failure_code(int err)
{
	switch (err) {
	case ENOSPC:
	case EDQUOT:
		return DSEC_ERROR_STORAGE_FULL;
	case ENOMEM:
	case EAGAIN:
	case EMFILE:
	case ENFILE:
	case EUSERS:
		return DSEC_ERROR_OVERLOADED;
	case ENOENT:
		return DSEC_ERROR_NOT_FOUND;
	case EEXIST:
		return DSEC_ERROR_STATE_CONFLICT;
	case EBUSY:
	case ENOTEMPTY:
	case EADDRINUSE:
		return DSEC_ERROR_CONFLICT;
	case EINVAL:
	case ELOOP:
	case ENOTDIR:
	case EXDEV:
	case ENAMETOOLONG:
		return DSEC_ERROR_INVALID_ARGUMENT;
	case EPERM:
	case EACCES:
		return DSEC_ERROR_PERMISSION_DENIED;
	case ENOSYS:
	case EOPNOTSUPP:
		return DSEC_ERROR_UNSUPPORTED;
	case EUCLEAN:
	case EBADMSG:
		return DSEC_ERROR_LAYER_INVALID;
	default:
		return DSEC_ERROR_INTERNAL;
	}
}

struct failure failure_at(const char *step, int err)
{
	struct failure failure = { .code = failure_code(err),
				   .err = err,
				   .message = strerror(err) };

	snprintf(failure.step, sizeof(failure.step), "%s", step);
	return failure;
}

struct failure failure_of(const char *code, const char *message)
{
	return (struct failure){ .code = code, .message = message };
}
