#include "event/assemble.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "config.h"
#include "event/spool.h"
#include "event/text.h"

struct work {
	const struct tl_assembly *a;
	const char *target;
	struct tl_spool_head head;
	struct tl_spool_funcs funcs;
	uint8_t *known; /* which of them have a name */
	int marks;
	uint64_t limit; /* how much of the marks to take */
	bool careful;	/* read the marks: totals are not known, blocks may be open */
	bool cut;	/* LIMIT was lowered for want of space */
	/* of one attempt */
	tl_chunk_refs chunks;
	struct tl_writer_totals totals;
	struct tl_outbuf o;
	struct tl_text_clock clock; /* 1997 only, and its names */
	char **names;
	char *buf;
};

static int read_chunk(struct work *w, const struct tl_chunk_ref *c)
{
	return tl_spool_read(w->marks, c->at, w->buf, c->length);
}

/* The chunks of one task from *I on, read one after another. A chunk that is not
 * what a writer leaves is cut off before the bad line, and the task ends there. */
static int survey_task(struct work *w, size_t *i)
{
	uint32_t task = w->chunks.at[*i].task;
	struct tl_scan s = {.known = w->known, .n_known = w->funcs.n};
	bool bad = false;
	int r = TL_OK;

	for (; *i < w->chunks.n && w->chunks.at[*i].task == task && r == TL_OK; ++*i) {
		struct tl_chunk_ref *c = &w->chunks.at[*i];
		size_t good = 0;

		if (!bad && (r = read_chunk(w, c)) == TL_OK)
			good = tl_text_scan(&s, w->buf, c->length);
		bad |= good < c->length;
		c->length = good;
	}
	w->totals.tasks++;
	w->totals.marks += s.marks + s.open.n;
	w->totals.forced += s.forced + s.open.n;
	w->totals.unwound += s.unwound;
	w->totals.user_ns += s.user_ns;
	w->totals.sys_ns += s.sys_ns;
	w->totals.wall_ns += s.wall_ns;
	tl_frames_fini(&s.open);
	return r;
}

static int survey(struct work *w)
{
	int r = TL_OK;

	w->totals = (struct tl_writer_totals){0};
	for (size_t i = 0; i < w->chunks.n && r == TL_OK;)
		r = survey_task(w, &i);
	return r;
}

static void put_head(struct work *w)
{
	const struct tl_writer_totals *t = &w->totals;
	const struct tl_spool_head *h = &w->head;
	struct tl_outbuf *o = &w->o;

	tl_outbuf_puts(o, "#fOrTyTwO\n"
			  "$hz=1000000000;\n"
			  "$XS_VERSION='" PACKAGE_STRING "';\n"
			  "# All values are given in HZ\n");
	tl_outbuf_printf(o, "$over_utime=%lld; $over_stime=%lld; $over_rtime=%lld;\n",
			 (long long)h->over[0], (long long)h->over[1], (long long)h->over[2]);
	tl_outbuf_printf(o, "$over_tests=%llu;\n", (unsigned long long)h->over_tests);
	tl_outbuf_printf(o, "$rrun_utime=%llu; $rrun_stime=%llu; $rrun_rtime=%llu;\n",
			 (unsigned long long)t->user_ns, (unsigned long long)t->sys_ns,
			 (unsigned long long)t->wall_ns);
	tl_outbuf_printf(o, "$total_marks=%llu;\nPART2\n", (unsigned long long)t->marks);
	tl_outbuf_printf(o, "#! trapline %d\n", TL_FORMAT_VERSION);
	tl_outbuf_printf(o,
			 "#! run marks=%llu tasks=%llu forced=%llu unwound=%llu lost=%llu%s%s%s\n",
			 (unsigned long long)t->marks, (unsigned long long)t->tasks,
			 (unsigned long long)t->forced, (unsigned long long)t->unwound,
			 (unsigned long long)t->lost, w->a->totals ? "" : " recovered=1",
			 h->run ? " " : "", h->run ? h->run : "");
	if (w->cut)
		tl_outbuf_puts(o, "#! truncated reason=space\n");
	for (size_t i = 0; i < h->notes.n; i++)
		tl_outbuf_printf(o, "#! %s\n", h->notes.at[i]);
}

static void put_funcs(struct work *w)
{
	bool ids = w->head.dialect == TL_DIALECT_IDS;

	w->names = tl_calloc(w->funcs.n, sizeof *w->names);
	for (size_t i = 1; i < w->funcs.n; i++) {
		const struct tl_spool_func *f = &w->funcs.at[i];
		const char *space;
		unsigned id = i + 1;

		if (!f->name)
			continue; /* never called */
		space = strchr(f->name, ' ');
		w->names[i] = tl_asprintf("%.*s::%s", (int)(space - f->name), f->name, space + 1);
		tl_outbuf_printf(&w->o, "#! func %x %s %s how=%s self=%s", id, f->about,
				 f->where ? f->where : "file= line=0",
				 f->how ? f->how : tl_how_names[TL_HOW_EXACT],
				 f->self ? f->self : tl_self_names[TL_SELF_MEASURED]);
		if (ids)
			tl_outbuf_printf(&w->o, "\n& %x %s\n", id, f->name);
		else
			tl_outbuf_printf(&w->o, " name=%s\n", w->names[i]);
	}
}

static void put_text(struct work *w, const char *text, size_t n)
{
	if (w->head.dialect == TL_DIALECT_1997)
		tl_text_1997(&w->o, &w->clock, (const char *const *)w->names, w->funcs.n, text, n);
	else
		tl_outbuf_write(&w->o, text, n);
}

/* Closes what the text of a task leaves open. */
static void put_close(struct work *w, struct tl_scan *s)
{
	char mark[TL_TEXT_MARK_MAX], end[128];
	size_t open = s->open.n;
	int n;

	while (s->open.n) {
		char *p = tl_text_mark(mark, '-', s->open.at[--s->open.n], TL_MARK_FORCED);

		put_text(w, mark, p - mark);
	}
	if (s->ended)
		return;
	n = snprintf(end, sizeof end, "#! end how=%s forced=%llu unwound=%llu lost=0\n",
		     w->cut ? "cut" : "crash", (unsigned long long)s->forced + open,
		     (unsigned long long)s->unwound);
	put_text(w, end, n);
}

static int put_task(struct work *w, size_t *i)
{
	uint32_t task = w->chunks.at[*i].task;
	struct tl_scan s = {0};
	int r = TL_OK;

	for (; *i < w->chunks.n && w->chunks.at[*i].task == task && r == TL_OK; ++*i) {
		const struct tl_chunk_ref *c = &w->chunks.at[*i];

		r = read_chunk(w, c);
		if (r == TL_OK && w->careful)
			tl_text_scan(&s, w->buf, c->length);
		if (r == TL_OK)
			put_text(w, w->buf, c->length);
	}
	if (r == TL_OK && w->careful)
		put_close(w, &s);
	tl_frames_fini(&s.open);
	return r;
}

static int put_profile(struct work *w)
{
	int r = tl_spool_index(w->marks, w->limit, &w->chunks);

	if (r == TL_OK && w->careful)
		r = survey(w);
	else if (r == TL_OK)
		w->totals = *w->a->totals;
	if (r < 0)
		return r;
	put_head(w);
	put_funcs(w);
	for (size_t i = 0; i < w->chunks.n && r == TL_OK && !w->o.err;)
		r = put_task(w, &i);
	return r;
}

/* The number in PATH behind PREFIX, or -1: a descriptor we have already. Opening it anew
 * would start at the beginning of a file that others append to, and fails for sockets. */
static int own_fd(const char *path)
{
	static const char *const prefixes[] = {"/dev/fd/", "/proc/self/fd/"};

	if (!strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (!strncmp(path, prefixes[i], strlen(prefixes[i])))
			return atoi(path + strlen(prefixes[i]));
	return -1;
}

static int open_straight(const char *target)
{
	int own = own_fd(target);

	return own >= 0 ? fcntl(own, F_DUPFD_CLOEXEC, 3) : open(target, O_WRONLY | O_CLOEXEC);
}

static int replace(const char *temp, const char *target)
{
	char *old = tl_asprintf("%s.old", target);
	int r = TL_OK;

	if (rename(target, old) < 0 && errno != ENOENT)
		r = tl_fail(-errno, "cannot keep the old profile as %s: %s; move %s away", old,
			    strerror(errno), target);
	if (r == TL_OK && rename(temp, target) < 0)
		r = tl_fail(-errno, "cannot write %s: %s", target, strerror(errno));
	free(old);
	return r;
}

static void attempt_fini(struct work *w)
{
	for (size_t i = 0; w->names && i < w->funcs.n; i++)
		free(w->names[i]);
	free(w->names);
	w->names = NULL;
	w->clock = (struct tl_text_clock){0};
	tl_vec_fini(&w->chunks);
	tl_outbuf_fini(&w->o);
}

/* *REACHED: bytes written. A failure to write says nothing yet: room may be found. */
static int attempt(struct work *w, uint64_t *reached)
{
	bool straight = w->a->straight;
	char *temp = straight ? NULL : tl_asprintf("%s.new.%d", w->target, (int)getpid());
	int fd = straight ? open_straight(w->target)
			  : open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int r, err;

	*reached = 0;
	if (fd < 0) {
		r = tl_fail(-errno, "cannot write %s: %s", w->target, strerror(errno));
		goto out;
	}
	tl_outbuf_init(&w->o, fd, 1 << 18);
	r = put_profile(w);
	err = tl_outbuf_flush(&w->o);
	*reached = w->o.written;
	if (close(fd) < 0 && !err)
		err = -errno;
	if (r == TL_OK && err)
		r = tl_fail(err, "cannot write %s: %s", w->target, strerror(-err));
	if (r == TL_OK && !straight)
		r = replace(temp, w->target);
	if (r < 0 && !straight)
		unlink(temp);
	attempt_fini(w);
out:
	free(temp);
	return r;
}

static bool no_room(int r)
{
	return r == -ENOSPC || r == -EFBIG || r == -EDQUOT;
}

/* Where there is no room even with the spare, takes less and less of the marks. */
static int attempts(struct work *w)
{
	uint64_t reached;
	struct stat st;
	int r = attempt(w, &reached);

	if (w->a->straight || !no_room(r) || fstat(w->marks, &st) < 0)
		return r;
	tl_spool_spend_spare(w->a->dir);
	r = attempt(w, &reached);
	for (w->limit = st.st_size; no_room(r) && w->limit; r = attempt(w, &reached)) {
		w->cut = w->careful = true;
		w->limit = (reached && reached < w->limit ? reached : w->limit) / 8 * 7;
	}
	return r;
}

static int open_marks(const char *dir)
{
	char *path = tl_asprintf("%s/marks", dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		fd = tl_fail(-errno, "cannot read %s: %s", path, strerror(errno));
	free(path);
	return fd;
}

static int assemble(const struct tl_assembly *a, bool *partial)
{
	struct work w = {.a = a, .marks = -1, .limit = UINT64_MAX, .careful = !a->totals};
	int r = tl_spool_head_read(a->dir, &w.head);

	if (r == TL_OK)
		r = tl_spool_funcs_read(a->dir, &w.funcs);
	if (r < 0)
		goto out;
	w.known = tl_calloc(w.funcs.n, 1);
	for (size_t i = 0; i < w.funcs.n; i++)
		w.known[i] = w.funcs.at[i].name != NULL;
	w.target = a->target ? a->target : w.head.output;
	if (!w.target) {
		r = tl_fail(-EINVAL, "the spool %s does not say where the profile was to go",
			    a->dir);
		goto out;
	}
	r = w.marks = open_marks(a->dir);
	if (r < 0)
		goto out;
	w.buf = tl_malloc(TL_CHUNK_MOST);
	r = attempts(&w);
out:
	*partial = w.cut;
	free(w.buf);
	free(w.known);
	if (w.marks >= 0)
		close(w.marks);
	tl_spool_funcs_fini(&w.funcs);
	tl_spool_head_fini(&w.head);
	return r;
}

/* A full quota of file size and a pipe nobody reads are errors, not our death. */
int tl_assemble(const struct tl_assembly *a, bool *partial)
{
	static const struct timespec now = {0};
	sigset_t ours, before, pending;
	int r;

	sigemptyset(&ours);
	sigaddset(&ours, SIGPIPE);
	sigaddset(&ours, SIGXFSZ);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &ours, &before);
	r = assemble(a, partial);
	if (sigismember(&pending, SIGPIPE))
		sigdelset(&ours, SIGPIPE);
	if (sigismember(&pending, SIGXFSZ))
		sigdelset(&ours, SIGXFSZ);
	while (sigtimedwait(&ours, NULL, &now) > 0)
		;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}
