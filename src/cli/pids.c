#include <config.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "cli/record_options.h"
#include "target/procfs.h"

enum { LISTED_MAX = 10, COMM_KEPT = 15 };

static int parse_number(const char *text, pid_t *pid)
{
	struct tl_proc_status st;
	unsigned long v;
	char *end;
	int r;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno || !v || v > INT_MAX)
		return tl_fail(-EINVAL, "-p %s: not the number of a process", text);
	if ((pid_t)v == getpid())
		return tl_fail(-EINVAL, "-p %s: that is trapline itself, which cannot trace itself",
			       text);
	r = tl_proc_status(v, &st);
	if (r == TL_GONE)
		return tl_fail(-ESRCH, "-p %s: there is no such process; `ps -e' lists them", text);
	if (r < 0)
		return r;
	*pid = v;
	return TL_OK;
}

static bool has_name(pid_t pid, const char *name)
{
	struct tl_proc_status st;
	char exe[PATH_MAX];
	const char *base;

	if (tl_proc_status(pid, &st) != TL_OK || st.state == 'Z' || st.state == 'X')
		return false;
	if (!strcmp(st.comm, name))
		return true;
	/* The kernel keeps 15 bytes of it. */
	if (strlen(name) > COMM_KEPT && strlen(st.comm) == COMM_KEPT &&
	    !strncmp(st.comm, name, COMM_KEPT))
		return true;
	if (tl_proc_exe(pid, exe, sizeof exe) != TL_OK)
		return false;
	base = strrchr(exe, '/');
	return base && !strcmp(base + 1, name);
}

static void add_command_line(struct tl_strbuf *b, pid_t pid)
{
	char path[64], line[61];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
	f = fopen(path, "re");
	if (f) {
		n = fread(line, 1, sizeof line - 1, f);
		fclose(f);
	}
	while (n && !line[n - 1])
		n--;
	for (size_t i = 0; i < n; i++)
		if (!isprint((unsigned char)line[i]))
			line[i] = line[i] ? '?' : ' ';
	line[n] = '\0';
	tl_strbuf_printf(b, "\n  %7d  %s", pid, line);
}

static int refuse_several(const char *name, const pid_t *pids, size_t n)
{
	struct tl_strbuf b = {0};
	int r;

	for (size_t i = 0; i < n && i < LISTED_MAX; i++)
		add_command_line(&b, pids[i]);
	if (n > LISTED_MAX)
		tl_strbuf_printf(&b, "\n  and %zu more", n - LISTED_MAX);
	r = tl_fail(
	    -EINVAL,
	    "-p %s: %zu processes have that name; give the number of one (-p may be repeated):%s",
	    name, n, tl_strbuf_text(&b));
	tl_strbuf_fini(&b);
	return r;
}

int tl_value_pid(const char *text, pid_t *pid)
{
	TL_VEC(pid_t) found = {0};
	struct dirent *e;
	DIR *d;
	int r = TL_OK;

	if (*text && text[strspn(text, "0123456789")] == '\0')
		return parse_number(text, pid);
	d = opendir("/proc");
	if (!d)
		return tl_fail(-errno, "/proc: %s; it must be mounted to find processes by name",
			       strerror(errno));
	while ((e = readdir(d))) {
		pid_t p = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : 0;

		if (p && p != getpid() && has_name(p, text))
			tl_vec_push(&found, p);
	}
	closedir(d);
	if (!found.n)
		r = tl_fail(-ESRCH, "-p %s: no process has that name; `ps -e' lists them", text);
	else if (found.n > 1)
		r = refuse_several(text, found.at, found.n);
	else
		*pid = found.at[0];
	tl_vec_fini(&found);
	return r;
}
