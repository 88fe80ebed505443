#include "target/procfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

static int failed(int err, pid_t tid, const char *what)
{
	/* ESRCH comes from files that were opened while the task still lived. */
	if (err == ENOENT || err == ESRCH)
		return TL_GONE;
	if (err == EACCES || err == EPERM)
		return tl_fail(-err, "/proc/%d/%s: %s; run as the owner of the process or as root",
			       tid, what, strerror(err));
	return tl_fail(-err, "/proc/%d/%s: %s", tid, what, strerror(err));
}

/* The whole of a file of /proc, whose size stat does not know. */
static int slurp(pid_t tid, const char *what, struct tl_strbuf *out)
{
	char path[64], buf[16384];
	ssize_t n;
	int fd, err;

	snprintf(path, sizeof path, "/proc/%d/%s", tid, what);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return failed(errno, tid, what);
	while ((n = read(fd, buf, sizeof buf)) > 0 || (n < 0 && errno == EINTR))
		if (n > 0)
			tl_strbuf_add(out, buf, (size_t)n);
	err = n < 0 ? errno : 0;
	close(fd);
	return err ? failed(err, tid, what) : TL_OK;
}

/* The kernel writes a newline within a path as \012; a backslash stays as it is. */
static void unescape_newlines(char *s)
{
	char *out = s;

	while (*s) {
		if (!strncmp(s, "\\012", 4)) {
			*out++ = '\n';
			s += 4;
		} else {
			*out++ = *s++;
		}
	}
	*out = '\0';
}

/* LINE ends with '\0'; false for one that makes no sense. */
static bool parse_mapping(char *line, struct tl_mapping *m)
{
	static const char deleted[] = " (deleted)";
	unsigned long long lo, hi, offset, inode;
	unsigned major, minor;
	char perms[5];
	int at = 0;
	size_t n;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu%n", &lo, &hi, perms, &offset, &major,
		   &minor, &inode, &at) != 7 ||
	    strlen(perms) != 4)
		return false;
	*m = (struct tl_mapping){
	    .lo = {lo},
	    .hi = {hi},
	    .readable = perms[0] == 'r',
	    .writable = perms[1] == 'w',
	    .executable = perms[2] == 'x',
	    .shared = perms[3] == 's',
	    .offset = offset,
	    .dev = makedev(major, minor),
	    .inode = (ino_t)inode,
	};
	line += at;
	line += strspn(line, " ");
	n = strlen(line);
	if (inode && n >= sizeof deleted && !strcmp(line + n - (sizeof deleted - 1), deleted)) {
		line[n - (sizeof deleted - 1)] = '\0';
		m->deleted = true;
	}
	unescape_newlines(line);
	m->path = line;
	return true;
}

int tl_maps_read(pid_t tid, struct tl_maps *out)
{
	struct tl_strbuf text = {0};
	TL_VEC(struct tl_mapping) v = {0};
	int r = slurp(tid, "maps", &text);

	*out = (struct tl_maps){0};
	if (r == TL_OK && text.n == 0)
		r = TL_GONE; /* a zombie, or a kernel thread */
	if (r != TL_OK) {
		tl_strbuf_fini(&text);
		return r;
	}
	out->text = tl_strbuf_take(&text);
	for (char *line = out->text, *next; line && *line; line = next) {
		struct tl_mapping m;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (parse_mapping(line, &m))
			tl_vec_push(&v, m);
	}
	out->at = v.at;
	out->n = v.n;
	return TL_OK;
}

void tl_maps_fini(struct tl_maps *m)
{
	free(m->at);
	free(m->text);
	*m = (struct tl_maps){0};
}

/* In /proc/TID/status a newline in the name is \n, a backslash \\, so that one line is one
 * field whatever a program calls itself: unlike in stat, no parenthesis can deceive. */
static void copy_comm(char *out, size_t size, const char *s)
{
	size_t n = 0;

	for (; *s && *s != '\n' && n + 1 < size; s++) {
		if (*s == '\\' && s[1] == 'n')
			out[n++] = '\n', s++;
		else if (*s == '\\' && s[1] == '\\')
			out[n++] = '\\', s++;
		else
			out[n++] = *s;
	}
	out[n] = '\0';
}

static void status_field(const char *key, const char *v, struct tl_proc_status *out)
{
	if (!strcmp(key, "Name"))
		copy_comm(out->comm, sizeof out->comm, v);
	else if (!strcmp(key, "State"))
		out->state = *v;
	else if (!strcmp(key, "Tgid"))
		out->tgid = (pid_t)strtol(v, NULL, 10);
	else if (!strcmp(key, "PPid"))
		out->ppid = (pid_t)strtol(v, NULL, 10);
	else if (!strcmp(key, "TracerPid"))
		out->tracer = (pid_t)strtol(v, NULL, 10);
	else if (!strcmp(key, "Uid"))
		sscanf(v, "%u %u", &out->uid, &out->euid);
	else if (!strcmp(key, "Threads"))
		out->threads = (unsigned)strtoul(v, NULL, 10);
	else if (!strcmp(key, "Seccomp"))
		out->seccomp = (unsigned)strtoul(v, NULL, 10);
	else if (!strcmp(key, "SigPnd"))
		out->sig_pending = strtoull(v, NULL, 16);
	else if (!strcmp(key, "SigBlk"))
		out->sig_blocked = strtoull(v, NULL, 16);
	else if (!strcmp(key, "SigIgn"))
		out->sig_ignored = strtoull(v, NULL, 16);
	else if (!strcmp(key, "SigCgt"))
		out->sig_caught = strtoull(v, NULL, 16);
}

int tl_proc_status(pid_t tid, struct tl_proc_status *out)
{
	struct tl_strbuf text = {0};
	int r = slurp(tid, "status", &text);

	*out = (struct tl_proc_status){0};
	if (r == TL_OK && text.n == 0)
		r = TL_GONE;
	for (char *line = r == TL_OK ? text.s : NULL, *next; line && *line; line = next) {
		char *colon;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		colon = strchr(line, ':');
		if (!colon)
			continue;
		*colon = '\0';
		/* One tab follows; blanks behind it belong to the name. */
		status_field(line, colon + 1 + (colon[1] == '\t'), out);
	}
	tl_strbuf_fini(&text);
	return r;
}

int tl_proc_tasks(pid_t pid, pid_t **out, size_t *n)
{
	TL_VEC(pid_t) v = {0};
	struct dirent *e;
	char path[64];
	int err = 0;
	DIR *d;

	*out = NULL;
	*n = 0;
	snprintf(path, sizeof path, "/proc/%d/task", pid);
	d = opendir(path);
	if (!d)
		return failed(errno, pid, "task");
	while ((errno = 0, e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]))
			tl_vec_push(&v, (pid_t)strtol(e->d_name, NULL, 10));
	err = errno;
	closedir(d);
	if (v.n == 0 || err) {
		tl_vec_fini(&v);
		return err ? failed(err, pid, "task") : TL_GONE;
	}
	*out = v.at;
	*n = v.n;
	return TL_OK;
}

int tl_proc_exe(pid_t tid, char *buf, size_t n)
{
	char path[64], dir[64];
	ssize_t len;

	snprintf(path, sizeof path, "/proc/%d/exe", tid);
	len = readlink(path, buf, n - 1);
	buf[len < 0 ? 0 : len] = '\0';
	if (len >= 0)
		return TL_OK;
	/* A kernel thread has no exe (ENOENT) though it is there. */
	snprintf(dir, sizeof dir, "/proc/%d", tid);
	return errno == ESRCH || access(dir, F_OK) != 0 ? TL_GONE : TL_OK;
}

int tl_proc_sleeper_pc(pid_t tid, tl_vaddr *pc)
{
	struct tl_strbuf b = {0};
	int r = slurp(tid, "syscall", &b);
	const char *last = r == TL_OK ? strrchr(tl_strbuf_text(&b), ' ') : NULL;

	/* "running", or number, six arguments, sp, pc; "-1 sp pc" blocked elsewhere. */
	if (r == TL_OK && !last)
		r = -EAGAIN;
	if (r == TL_OK)
		pc->u = strtoull(last, NULL, 16);
	tl_strbuf_fini(&b);
	return r;
}
