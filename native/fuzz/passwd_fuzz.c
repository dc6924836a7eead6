/* Any text as /etc/passwd and /etc/group, with a user that is the first line of it. */
#include <string.h>

#include "passwd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dsec_bytes text = { data, (uint32_t)size };
	const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
	struct dsec_bytes user = { data, end ? (uint32_t)(end - data) : (uint32_t)size };
	struct account account;

	if (account_find(text, text, user, &account))
		return 0;
	if (account.group_count > ACCOUNT_GROUPS_MAX ||
	    !memchr(account.name, 0, sizeof(account.name)) ||
	    !memchr(account.home, 0, sizeof(account.home)) ||
	    !memchr(account.shell, 0, sizeof(account.shell)))
		__builtin_trap();
	return 0;
}
