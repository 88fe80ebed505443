#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "event/assemble.h"
#include "event/spool.h"

/* A process id alone may be another process by now, or one of another PID namespace:
 * only the time it started makes sure. */
static int refuse_living(const char *dir, const struct tl_spool_head *h)
{
	uint64_t started = h->pid > 0 ? tl_spool_started(h->pid) : 0;

	if (!started || started != h->started)
		return TL_OK;
	return tl_fail(-EBUSY,
		       "%s is being recorded to by process %d; wait until it ends, or stop it "
		       "with kill -TERM %d, and the profile appears by itself",
		       dir, h->pid, h->pid);
}

/* `OUTPUT.spool.PID', for a spool whose head did not even get that far. */
static char *name_from_dir(const char *dir)
{
	char *name = tl_strdup(dir), *end;
	size_t n = strlen(name);

	while (n > 1 && name[n - 1] == '/')
		name[--n] = 0;
	for (end = name; end && (end = strstr(end, ".spool.")) && strstr(end + 1, ".spool.");)
		end++;
	if (end && end > name && end[-1] != '/') {
		*end = 0;
		return name;
	}
	free(name);
	return NULL;
}

static void remove_temp(const char *target, int pid)
{
	char *temp = tl_asprintf("%s.new.%d", target, pid);

	if (pid > 0)
		unlink(temp);
	free(temp);
}

int tl_spool_recover(const char *dir, const char *output)
{
	struct tl_spool_head h;
	struct tl_assembly a = {.dir = dir};
	char *guess = NULL, *target = NULL;
	bool partial = false;
	int r = tl_spool_head_read(dir, &h);

	if (r == TL_OK)
		r = refuse_living(dir, &h);
	if (r < 0)
		goto out;
	if (!output)
		output = h.output ? h.output : (guess = name_from_dir(dir));
	if (!output) {
		r = tl_fail(-EINVAL,
			    "%s does not say where its profile was to go; name a file with -o",
			    dir);
		goto out;
	}
	r = tl_spool_target(output, &target, &a.straight);
	if (r < 0)
		goto out;
	if (!a.straight)
		remove_temp(target, h.pid);
	a.target = target;
	r = tl_assemble(&a, &partial);
	if (r == TL_OK && partial)
		r = tl_fail(-ENOSPC,
			    "there was room for the first part of the profile only, now in %s; "
			    "all of it is in %s: free some space and repeat",
			    target, dir);
	else if (r == TL_OK)
		tl_spool_remove(dir);
out:
	free(target);
	free(guess);
	tl_spool_head_fini(&h);
	return r;
}
