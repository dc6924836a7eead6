#include "raw_token.h"

const uint8_t *raw_token_of(uint8_t code, struct dsec_bytes payload)
{
	const struct dsec_frame_type *type = dsec_frame_type(&dsec_aether_protocol, code);
	struct dsec_msg_file_read read_message;
	struct dsec_msg_file_write write_message;
	struct dsec_msg_port_open port_message;

	switch (code) {
	case DSEC_AETHER_FILE_READ:
		dsec_message_decode(type->message, payload, &read_message);
		return read_message.raw_token.data;
	case DSEC_AETHER_FILE_WRITE:
		dsec_message_decode(type->message, payload, &write_message);
		return write_message.raw_token.data;
	case DSEC_AETHER_PORT_OPEN:
		dsec_message_decode(type->message, payload, &port_message);
		return port_message.raw_token.data;
	default:
		return NULL;
	}
}

bool raw_token_same(const uint8_t *one, const uint8_t *other)
{
	uint8_t difference = 0;

	for (int i = 0; i < DSEC_NONCE_BYTES; i++)
		difference |= one[i] ^ other[i];
	return difference == 0;
}
