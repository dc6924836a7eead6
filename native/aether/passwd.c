#include "passwd.h"

#include <errno.h>
#include <string.h>

enum {
	PASSWD_FIELDS = 7,
	GROUP_FIELDS = 4,
};

/* Takes what comes before `separator` off the text. Returns false at its end. */
static bool take(struct dsec_bytes *text, char separator, struct dsec_bytes *part)
{
	const uint8_t *end;

	if (!text->data)
		return false;
	end = text->length > 0 ? memchr(text->data, separator, text->length) : NULL;
	if (!end) {
		*part = *text;
		*text = (struct dsec_bytes){ NULL, 0 };
		return true;
	}
	*part = (struct dsec_bytes){ text->data, (uint32_t)(end - text->data) };
	text->data = end + 1;
	text->length -= part->length + 1;
	return true;
}

/* Takes the next line that has exactly so many fields. */
static bool take_line(struct dsec_bytes *text, struct dsec_bytes *fields, int count)
{
	struct dsec_bytes line;

	while (take(text, '\n', &line)) {
		struct dsec_bytes surplus;
		int found = 0;

		while (found < count && take(&line, ':', &fields[found]))
			found++;
		if (found == count && !take(&line, ':', &surplus))
			return true;
	}
	return false;
}

static bool same(struct dsec_bytes one, struct dsec_bytes other)
{
	return one.length == other.length &&
	       (one.length == 0 || !memcmp(one.data, other.data, one.length));
}

bool account_parse_id(struct dsec_bytes text, uint32_t *id)
{
	uint64_t value = 0;

	if (text.length == 0 || text.length > 10)
		return false;
	for (uint32_t i = 0; i < text.length; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
		value = value * 10 + (text.data[i] - '0');
	}
	*id = (uint32_t)value;
	return value < UINT32_MAX;
}

/* A field as text, or `otherwise` when it is empty, too long or no text. */
static void copy_field(char *to, size_t size, struct dsec_bytes field, const char *otherwise)
{
	if (field.length == 0 || field.length >= size || memchr(field.data, 0, field.length)) {
		strcpy(to, otherwise);
		return;
	}
	memcpy(to, field.data, field.length);
	to[field.length] = 0;
}

bool passwd_find(struct dsec_bytes passwd, struct dsec_bytes key, struct account *account)
{
	struct dsec_bytes fields[PASSWD_FIELDS];
	uint32_t wanted = 0;
	bool by_id = account_parse_id(key, &wanted);

	while (take_line(&passwd, fields, PASSWD_FIELDS)) {
		uint32_t uid, gid;

		if (!account_parse_id(fields[2], &uid) || !account_parse_id(fields[3], &gid))
			continue;
		if (by_id ? uid != wanted : !same(fields[0], key))
			continue;
		account->uid = uid;
		account->gid = gid;
		account->group_count = 0;
		copy_field(account->name, sizeof(account->name), fields[0], "user");
		copy_field(account->home, sizeof(account->home), fields[5], "/");
		copy_field(account->shell, sizeof(account->shell), fields[6], "/bin/sh");
		return true;
	}
	return false;
}

bool group_find(struct dsec_bytes group, struct dsec_bytes key, uint32_t *gid)
{
	struct dsec_bytes fields[GROUP_FIELDS];

	if (account_parse_id(key, gid))
		return true;
	while (take_line(&group, fields, GROUP_FIELDS)) {
		if (same(fields[0], key) && account_parse_id(fields[2], gid))
			return true;
	}
	return false;
}

void group_memberships(struct dsec_bytes group, struct account *account)
{
	struct dsec_bytes name = { (const uint8_t *)account->name,
				   (uint32_t)strlen(account->name) };
	struct dsec_bytes fields[GROUP_FIELDS];
	struct dsec_bytes member;

	while (account->group_count < ACCOUNT_GROUPS_MAX &&
	       take_line(&group, fields, GROUP_FIELDS)) {
		uint32_t gid;

		if (!account_parse_id(fields[2], &gid) || gid == account->gid)
			continue;
		while (take(&fields[3], ',', &member)) {
			if (same(member, name)) {
				account->groups[account->group_count++] = gid;
				break;
			}
		}
	}
}

int account_find(struct dsec_bytes passwd, struct dsec_bytes group, struct dsec_bytes user,
		 struct account *account)
{
	struct dsec_bytes rest = user;
	struct dsec_bytes name;

	take(&rest, ':', &name);
	if (!passwd_find(passwd, name, account)) {
		*account = (struct account){ .home = "/", .shell = "/bin/sh", .name = "user" };
		if (!account_parse_id(name, &account->uid))
			return -ENOENT;
	} else if (!rest.data) {
		group_memberships(group, account);
	}
	if (rest.data && !group_find(group, rest, &account->gid))
		return -ENOENT;
	return 0;
}
