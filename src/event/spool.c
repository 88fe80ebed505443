#include "event/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

static const char *const files[] = {"head", "funcs", "marks", "spare"};
enum { WRITTEN = 3, FILES = 4 }; /* the spare one is not */

/* A profile of some 80,000 marks: enough to see what was going on until the disk was full. */
static const off_t spare_size = 1 << 20;

static char *dir_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return tl_strdup(".");
	return slash == path ? tl_strdup("/") : tl_strndup(path, slash - path);
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The output is not there yet: only its folder can be resolved. */
static int resolve_new(const char *output, char **target)
{
	char *dir = dir_of(output), *real = realpath(dir, NULL);
	int r = TL_OK;

	if (real && *name_of(output))
		*target = tl_asprintf("%s/%s", strcmp(real, "/") ? real : "", name_of(output));
	else if (real)
		r = tl_fail(-EISDIR,
			    "cannot write the profile to %s: it is a folder; name a file in it "
			    "with -o",
			    output);
	else
		r = tl_fail(-errno,
			    "cannot write the profile to %s: folder %s: %s; make it, or name "
			    "another file with -o",
			    output, dir, strerror(errno));
	free(real);
	free(dir);
	return r;
}

int tl_spool_target(const char *output, char **target, bool *straight)
{
	/* /dev/stdout leads to whatever file the shell opened: replacing that by rename
	 * would take it away from others who write to it. */
	bool device = !strncmp(output, "/dev/", 5) || !strncmp(output, "/proc/", 6);
	struct stat st;

	*target = NULL;
	*straight = false;
	if (stat(output, &st) < 0)
		return resolve_new(output, target);
	if (S_ISDIR(st.st_mode))
		return tl_fail(-EISDIR,
			       "cannot write the profile to %s: it is a folder; name a file "
			       "in it with -o",
			       output);
	*straight = device || !S_ISREG(st.st_mode);
	if (*straight && access(output, W_OK) < 0)
		return tl_fail(-errno,
			       "cannot write the profile to %s: %s; name another file with -o",
			       output, strerror(errno));
	*target = *straight ? tl_strdup(output) : realpath(output, NULL);
	if (!*target)
		return tl_fail(-errno, "cannot write the profile to %s: %s", output,
			       strerror(errno));
	return TL_OK;
}

static int open_in(const char *dir, const char *name)
{
	char *path = tl_asprintf("%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0)
		fd = tl_fail(-errno, "cannot make %s: %s", path, strerror(errno));
	free(path);
	return fd;
}

/* A process id comes again: a folder of that name may be left from a crash. */
static int make_dir(struct tl_spool *s, const char *target, bool straight)
{
	const char *tmp = getenv("TMPDIR");
	char *base = straight ? tl_asprintf("%s/%s", tmp && *tmp ? tmp : "/tmp", name_of(target))
			      : tl_strdup(target);
	int r;

	for (int i = 0; i < 100; i++) {
		free(s->dir);
		s->dir = i ? tl_asprintf("%s.spool.%d.%d", base, (int)getpid(), i)
			   : tl_asprintf("%s.spool.%d", base, (int)getpid());
		r = mkdir(s->dir, 0700) < 0 ? -errno : TL_OK;
		if (r != -EEXIST)
			break;
	}
	if (r < 0)
		tl_fail(
		    r,
		    "cannot record to %s: making the folder %s: %s; name a file in a folder that "
		    "you may write to with -o",
		    target, s->dir, strerror(-r));
	free(base);
	return r;
}

/* Best effort: there are filesystems that cannot set room aside. */
static void make_spare(const char *dir)
{
	int fd = open_in(dir, "spare");

	if (fd < 0)
		return;
	if (fallocate(fd, 0, 0, spare_size) < 0)
		tl_spool_spend_spare(dir);
	close(fd);
}

void tl_spool_spend_spare(const char *dir)
{
	char *path = tl_asprintf("%s/spare", dir);

	unlink(path);
	free(path);
}

int tl_spool_create(struct tl_spool *s, const char *target, bool straight)
{
	static const size_t sizes[] = {1 << 12, 1 << 15, 1 << 18};
	struct tl_outbuf *const bufs[] = {&s->head, &s->funcs, &s->marks};
	int r;

	*s = (struct tl_spool){.head = {.fd = -1}, .funcs = {.fd = -1}, .marks = {.fd = -1}};
	r = make_dir(s, target, straight);
	for (int i = 0; r == TL_OK && i < WRITTEN; i++) {
		int fd = open_in(s->dir, files[i]);

		if (fd < 0)
			r = fd;
		else
			tl_outbuf_init(bufs[i], fd, sizes[i]);
	}
	if (r == TL_OK)
		make_spare(s->dir);
	return r;
}

static int failed(struct tl_spool *s, const char *name, int err)
{
	if (!s->err) {
		s->err = err;
		s->why = tl_asprintf("cannot write %s/%s: %s", s->dir, name, strerror(-err));
	}
	return tl_fail(s->err, "%s", s->why);
}

static int flush(struct tl_spool *s, struct tl_outbuf *o, const char *name)
{
	int r = s->err ? s->err : tl_outbuf_flush(o);

	return r < 0 ? failed(s, name, r) : TL_OK;
}

void tl_spool_head(struct tl_spool *s, const char *line)
{
	tl_outbuf_puts(&s->head, line);
	tl_outbuf_write(&s->head, "\n", 1);
	flush(s, &s->head, "head");
}

int tl_spool_flush(struct tl_spool *s)
{
	int r = flush(s, &s->head, "head");

	if (r == TL_OK)
		r = flush(s, &s->funcs, "funcs");
	return r == TL_OK ? flush(s, &s->marks, "marks") : r;
}

void tl_spool_chunk(struct tl_spool *s, uint32_t task, uint32_t seq, const char *text, size_t n)
{
	struct tl_chunk_header h = {TL_CHUNK_MAGIC, task, n, seq};

	if (s->err)
		return;
	if (s->marks.cap - s->marks.n < n + sizeof h)
		tl_spool_flush(s); /* functions first */
	if (s->err)
		return;
	tl_outbuf_write(&s->marks, &h, sizeof h);
	tl_outbuf_write(&s->marks, text, n);
}

static void fini(struct tl_outbuf *o)
{
	if (o->fd >= 0)
		close(o->fd);
	tl_outbuf_fini(o);
	o->fd = -1;
}

void tl_spool_close(struct tl_spool *s)
{
	fini(&s->head);
	fini(&s->funcs);
	fini(&s->marks);
	free(s->dir);
	free(s->why);
	s->dir = s->why = NULL;
}

void tl_spool_remove(const char *dir)
{
	for (int i = 0; i < FILES; i++) {
		char *path = tl_asprintf("%s/%s", dir, files[i]);

		unlink(path);
		free(path);
	}
	rmdir(dir);
}

int tl_spool_read(int fd, uint64_t at, void *buf, size_t n)
{
	for (size_t got = 0; got < n;) {
		ssize_t r = pread(fd, (char *)buf + got, n - got, at + got);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return tl_fail(r ? -errno : -EIO, "cannot read the spool: %s",
				       r ? strerror(errno) : "it became shorter");
		got += r;
	}
	return TL_OK;
}

static int by_task(const void *a, const void *b)
{
	const struct tl_chunk_ref *x = a, *y = b;

	if (x->task != y->task)
		return x->task < y->task ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

int tl_spool_index(int marks_fd, uint64_t limit, tl_chunk_refs *out)
{
	struct tl_chunk_header h;
	struct stat st;
	uint64_t at = 0;
	int r;

	if (fstat(marks_fd, &st) < 0)
		return tl_fail(-errno, "cannot read the spool: %s", strerror(errno));
	if (limit > (uint64_t)st.st_size)
		limit = st.st_size;
	while (at + sizeof h <= limit) {
		r = tl_spool_read(marks_fd, at, &h, sizeof h);
		if (r < 0)
			return r;
		at += sizeof h;
		/* What a crash cut off; and nothing sensible follows damage. */
		if (h.magic != TL_CHUNK_MAGIC || h.length > TL_CHUNK_MOST || h.length > limit - at)
			break;
		tl_vec_push(out, (struct tl_chunk_ref){at, h.task, h.length});
		at += h.length;
	}
	if (out->n)
		qsort(out->at, out->n, sizeof *out->at, by_task);
	return TL_OK;
}

int tl_spool_slurp(const char *dir, const char *name, char **out)
{
	char *path = tl_asprintf("%s/%s", dir, name), *last;
	int fd = open(path, O_RDONLY | O_CLOEXEC), r = TL_OK;
	struct stat st;

	*out = NULL;
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = tl_fail(-errno, "cannot read %s: %s; is %s the spool folder of a recording?",
			    path, strerror(errno), dir);
		goto out;
	}
	*out = tl_malloc(st.st_size + 1);
	r = tl_spool_read(fd, 0, *out, st.st_size);
	(*out)[r < 0 ? 0 : st.st_size] = 0;
	last = strrchr(*out, '\n');
	(*out)[last ? last + 1 - *out : 0] = 0;
out:
	if (fd >= 0)
		close(fd);
	free(path);
	return r;
}
