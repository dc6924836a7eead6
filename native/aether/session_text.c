#include "session_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A quote inside quotes becomes '\'' */
enum {
	QUOTED_BYTES_EACH = 4,
	/* Two levels: a word in a text in an eval. */
	QUOTED_TWICE_EACH = 13,
	FRAME_BYTES = 256,
};

struct text {
	char *data;
	size_t length;
	int level; /* how many quotes a byte is inside of */
};

static void put(struct text *text, const char *plain)
{
	size_t length = strlen(plain);

	memcpy(text->data + text->length, plain, length);
	text->length += length;
}

static void put_byte(struct text *text, char byte)
{
	static const char *const quotes[] = { "'", "'\\''", "'\\''\\'\\'''\\''" };

	if (byte == '\'')
		put(text, quotes[text->level]);
	else
		text->data[text->length++] = byte;
}

static void put_bytes(struct text *text, struct dsec_bytes bytes)
{
	for (uint32_t i = 0; i < bytes.length; i++)
		put_byte(text, (char)bytes.data[i]);
}

/* Inside the eval's quotes already. */
static void put_word(struct text *text, struct dsec_bytes word)
{
	put_byte(text, '\'');
	text->level++;
	put_bytes(text, word);
	text->level--;
	put_byte(text, '\'');
	put(text, " ");
}

char *session_text(const struct dsec_msg_exec_start *message, const char *word, size_t *length)
{
	size_t bytes = FRAME_BYTES + (size_t)message->shell.length * QUOTED_BYTES_EACH +
		       (size_t)message->argv.items.length * QUOTED_TWICE_EACH;
	struct text text = { .data = malloc(bytes) };
	struct dsec_list rest = message->argv;
	struct dsec_bytes item;
	char report[SESSION_WORD_BYTES + 64];

	if (!text.data)
		return NULL;
	/* `command` keeps a mistake in the text from ending the shell. */
	put(&text, "{ command eval '");
	text.level = 1;
	put_bytes(&text, message->shell);
	while (dsec_list_next(&rest, &item))
		put_word(&text, item);
	put(&text, message->stdin_open ? "'\n} 9>&-\n" : "'\n} 9>&- </dev/null\n");
	snprintf(report, sizeof(report), "printf '%%s %%d\\n' %s \"$?\" >&9\n", word);
	put(&text, report);
	*length = text.length;
	return text.data;
}
