/* A reader of profiles that knows nothing of the writer: it checks that every line is one
 * dprofpp takes and that every block is balanced, and adds up. */
#ifndef TL_TESTS_PROFILE_H
#define TL_TESTS_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

enum { PROFILE_FUNCS = 4096, PROFILE_DEPTH = 4096 };

struct profile {
	char *text;
	uint64_t enters, exits, synthetic, unwound, forced, tasks, ends;
	uint64_t user_ns, sys_ns, wall_ns;		     /* of the `@' lines */
	uint64_t head_user, head_sys, head_wall, head_marks; /* of the header */
	uint64_t calls[PROFILE_FUNCS];			     /* by text id */
};

/* Asserts what is said above. */
struct profile profile_read(const char *path);
void profile_free(struct profile *p);
bool profile_has(const struct profile *p, const char *text);

/* Asserts that the real dprofpp, where there is one, prints PATH under OPTIONS and says
 * nothing on stderr. Its output, or NULL; owned by the caller. */
char *profile_dprofpp(const char *path, const char *options);

/* A folder of the test's own; removed with what is in it. */
char *folder_new(void);
void folder_remove(char *dir);
/* How many names in DIR contain PART. */
int folder_count(const char *dir, const char *part);
char *folder_path(const char *dir, const char *name);

#endif
