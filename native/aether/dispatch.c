#include "dispatch.h"

#include <errno.h>

#include "command.h"
#include "file_request.h"
#include "link.h"
#include "reseed.h"
#include "rules.h"
#include "session.h"
#include "stream.h"

/* A request that opens its stream. Returns 0 or -EPROTO. */
static const struct {
	uint8_t code;
	int (*handle)(const struct dsec_frame *frame);
} requests[] = {
	{ DSEC_AETHER_EXEC_START, command_start },    { DSEC_AETHER_EXEC_ATTACH, command_attach },
	{ DSEC_AETHER_SESSION_OPEN, session_open },   { DSEC_AETHER_SESSION_CLOSE, session_close },
	{ DSEC_AETHER_SESSION_WATCH, session_watch }, { DSEC_AETHER_FILE_READ, file_request },
	{ DSEC_AETHER_FILE_WRITE, file_request },     { DSEC_AETHER_FILE_STAT, file_request },
	{ DSEC_AETHER_FILE_LIST, file_request },      { DSEC_AETHER_FILE_MKDIR, file_request },
	{ DSEC_AETHER_FILE_MOVE, file_request },      { DSEC_AETHER_FILE_REMOVE, file_request },
	{ DSEC_AETHER_PORT_OPEN, file_request },      { DSEC_AETHER_SESSION_RULES, rules_take },
	{ DSEC_AETHER_QUIESCE, rules_quiesce },
};

static int dispatch_connection_frame(const struct dsec_frame *frame)
{
	switch (frame->type->code) {
	case DSEC_AETHER_PING:
		link_put_at(DSEC_AETHER_PONG, 0, frame->offset, &(struct dsec_msg_empty){ 0 });
		return 0;
	case DSEC_AETHER_PONG:
		return 0;
	case DSEC_AETHER_ERROR:
		/* The host says that it closes the connection; its end of file follows. */
		return 0;
	case DSEC_AETHER_RESEED:
		return reseed(frame);
	default:
		/* A second hello belongs on a connection of its own. */
		return -EPROTO;
	}
}

int dispatch_frame(const struct dsec_frame *frame)
{
	struct stream *stream;

	if (frame->stream == 0)
		return dispatch_connection_frame(frame);
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (requests[i].code != frame->type->code)
			continue;
		return stream_may_open(frame->stream) ? requests[i].handle(frame) : -EPROTO;
	}
	/* Names its command, as it may come on any stream. */
	if (frame->type->code == DSEC_AETHER_EXEC_EXIT_ACK)
		return command_forget(frame);
	stream = stream_find(frame->stream);
	/* Frames that crossed the end of their request on the way mean nothing any more. */
	return stream ? stream->kind->consume(stream, frame) : 0;
}
