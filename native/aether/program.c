#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "identity.h"
#include "start.h"

enum {
	ARGUMENTS_MAX = 4096,
	VARIABLES_MAX = 1024,
	DEFAULTS_MAX = 8,
	/* All arguments and variables of the longest frame, a directory, and the defaults. */
	TEXT_BYTES = 256 * 1024,
};

static char text[TEXT_BYTES];
static size_t text_used;
static char *arguments[ARGUMENTS_MAX + 4];
static char *variables[VARIABLES_MAX + DEFAULTS_MAX + 1];
static int variable_count;

static char *keep(struct dsec_bytes bytes)
{
	char *copy = text + text_used;

	if (TEXT_BYTES - text_used <= bytes.length)
		return NULL;
	if (bytes.length > 0)
		memcpy(copy, bytes.data, bytes.length);
	copy[bytes.length] = 0;
	text_used += bytes.length + 1;
	return copy;
}

static char *keep_text(const char *from)
{
	return keep((struct dsec_bytes){ (const uint8_t *)from, (uint32_t)strlen(from) });
}

static const char *variable(const char *name)
{
	size_t length = strlen(name);

	for (int i = 0; i < variable_count; i++) {
		if (!strncmp(variables[i], name, length) && variables[i][length] == '=')
			return variables[i] + length + 1;
	}
	return NULL;
}

static int add_default(const char *name, const char *value)
{
	char line[ACCOUNT_PATH_BYTES + 16];

	if (variable(name))
		return 0;
	snprintf(line, sizeof(line), "%s=%s", name, value);
	variables[variable_count] = keep_text(line);
	return variables[variable_count++] ? 0 : -E2BIG;
}

static int prepare_environment(const struct start *start, const struct account *account)
{
	struct dsec_list rest = start->env;
	struct dsec_bytes item;

	while (variable_count < VARIABLES_MAX && dsec_list_next(&rest, &item)) {
		variables[variable_count] = keep(item);
		if (!variables[variable_count++])
			return -E2BIG;
	}
	if (add_default("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin") ||
	    add_default("HOME", account->home) || add_default("USER", account->name) ||
	    add_default("LOGNAME", account->name) || add_default("SHELL", account->shell))
		return -E2BIG;
	return start->terminal >= 0 ? add_default("TERM", "xterm-256color") : 0;
}

static int prepare_arguments(const struct start *start, const struct account *account)
{
	struct dsec_list rest = start->argv;
	struct dsec_bytes item;
	int count = 0;

	while (count < ARGUMENTS_MAX && dsec_list_next(&rest, &item))
		arguments[count++] = keep(item);
	if (start->session) {
		if (count == 0)
			arguments[count++] = keep_text(account->shell);
		arguments[count++] = keep_text("/proc/self/fd/3");
	} else if (count == 0) {
		arguments[count++] = keep_text("/bin/sh");
		arguments[count++] = keep_text("-c");
		arguments[count++] = keep(start->shell);
	}
	for (int i = 0; i < count; i++) {
		if (!arguments[i])
			return -E2BIG;
	}
	return 0;
}

int program_prepare(const struct start *start, struct program *program,
		    struct start_failure *failure)
{
	bool own_shell = start->session && start->argv.count == 0;
	int err = identity_find(start->user, own_shell, &program->account);

	failure->step = STEP_USER;
	if (err == -ENOENT && start->user.length == 0) {
		program->account = account_root;
		err = 0;
	}
	if (!err) {
		failure->step = STEP_MEMORY;
		err = prepare_environment(start, &program->account);
	}
	if (!err)
		err = prepare_arguments(start, &program->account);
	program->argv = arguments;
	program->env = variables;
	program->cwd = start->cwd.length > 0 ? keep(start->cwd) : "/";
	program->search_path = variable("PATH");
	if (!err && !program->cwd)
		err = -E2BIG;
	failure->error = -err;
	return err;
}
