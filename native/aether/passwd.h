/*
 * The sandbox's own /etc/passwd and /etc/group, as text that anyone inside may have written.
 * Nothing here allocates or does I/O; fields that do not fit and lines that make no sense are
 * passed over.
 */
#ifndef AETHER_PASSWD_H
#define AETHER_PASSWD_H

#include "message.h"

enum {
	ACCOUNT_NAME_BYTES = 65,
	ACCOUNT_PATH_BYTES = 256,
	/* Memberships that are looked at; Linux allows more, no account needs them. */
	ACCOUNT_GROUPS_MAX = 64,
};

struct account {
	uint32_t uid;
	uint32_t gid;
	uint32_t group_count;
	uint32_t groups[ACCOUNT_GROUPS_MAX];
	char name[ACCOUNT_NAME_BYTES];
	char home[ACCOUNT_PATH_BYTES];
	char shell[ACCOUNT_PATH_BYTES];
};

/* A decimal id below 2^32-1, the number that stands for none. */
bool account_parse_id(struct dsec_bytes text, uint32_t *id);

/* Fills in the account whose name or, for digits, id is `key`. Returns false when there is none. */
bool passwd_find(struct dsec_bytes passwd, struct dsec_bytes key, struct account *account);
/* The id of the group whose name or id is `key`. A number needs no line. */
bool group_find(struct dsec_bytes group, struct dsec_bytes key, uint32_t *gid);
/* Adds the groups that list the account's name. */
void group_memberships(struct dsec_bytes group, struct account *account);

/*
 * Fills in the account for `user`, a name or number or `user:group`. A number needs no line: its
 * group is then 0 and its home `/`. Returns 0 or -ENOENT.
 */
int account_find(struct dsec_bytes passwd, struct dsec_bytes group, struct dsec_bytes user,
		 struct account *account);

#endif
