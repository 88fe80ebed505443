#include "event/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef TL_DEBUG
#include <assert.h>
#else
#define assert(x) ((void)0)
#endif

#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "event/assemble.h"
#include "event/spool.h"
#include "event/text.h"

enum {
	BUF_FIRST = 1 << 11, /* a thread that does little costs little */
	BUF_MOST = 1 << 15,
	/* What a limit of size keeps back: for the head; for closing a frame; for ending
	 * a task. */
	KEEP_HEAD = 6144,
	KEEP_FRAME = 16,
	KEEP_TASK = 128,
};

struct func {
	char *line; /* for the spool, until the first call */
	uint32_t name_len;
	bool used;
	uint8_t how, self;
};

struct task {
	uint32_t id, seq;
	struct tl_frames open;
	uint64_t user_ns, sys_ns, wall_ns; /* since the last `@' */
	uint64_t forced, unwound, lost;
	char *buf; /* NULL: nothing to write */
	size_t n, cap;
	bool idle;   /* no text since the last flush */
	bool marked; /* something follows the task's first line */
	int pid, tid;
	uint64_t start_ns;
};

struct tl_writer {
	struct tl_spool spool;
	char *target;
	bool straight, full;
	enum tl_dialect dialect;
	uint64_t max_size, size, open_frames;
	TL_VEC(struct func) funcs; /* [0] is no function */
	uint32_t n_tasks, last_id;
	struct tl_map tasks; /* the living */
	struct task *last;   /* of last_id: most marks follow one of the same task */
	struct tl_writer_totals totals;
};

static void spool_head_start(struct tl_writer *w)
{
	struct tl_strbuf b = {0};

	tl_strbuf_printf(&b, "trapline-spool %d\npid %d\nstarted %llu\ndialect %s\noutput ",
			 TL_FORMAT_VERSION, (int)getpid(),
			 (unsigned long long)tl_spool_started(getpid()),
			 w->dialect == TL_DIALECT_1997 ? "1997" : "ids");
	tl_writer_encode(&b, w->target);
	tl_spool_head(&w->spool, tl_strbuf_text(&b));
	tl_strbuf_fini(&b);
}

int tl_writer_open(const struct tl_writer_options *o, struct tl_writer **out)
{
	struct tl_writer *w = tl_calloc(1, sizeof *w);
	int r;

	*out = NULL;
	w->dialect = o->dialect;
	w->max_size = o->max_size;
	w->size = KEEP_HEAD;
	tl_vec_push(&w->funcs, (struct func){0});
	r = tl_spool_target(o->output, &w->target, &w->straight);
	if (r < 0) {
		free(w->target);
		tl_vec_fini(&w->funcs);
		free(w);
		return r;
	}
	r = tl_spool_create(&w->spool, w->target, w->straight);
	if (r == TL_OK) {
		spool_head_start(w);
		r = tl_spool_flush(&w->spool);
	}
	if (r == TL_OK) {
		*out = w;
		return TL_OK;
	}
	if (w->spool.dir)
		tl_spool_remove(w->spool.dir);
	tl_spool_close(&w->spool);
	free(w->target);
	tl_vec_fini(&w->funcs);
	free(w);
	return r;
}

static struct task *task_of(struct tl_writer *w, uint32_t id)
{
	if (!w->last || w->last_id != id) {
		w->last = tl_map_get(&w->tasks, id);
		w->last_id = id;
	}
	return w->last;
}

static void cut_chunk(struct tl_writer *w, struct task *t)
{
	if (t->n)
		tl_spool_chunk(&w->spool, t->id, t->seq++, t->buf, t->n);
	t->n = 0;
}

/* Room for N more bytes at the end of the task's text. */
static char *room(struct tl_writer *w, struct task *t, size_t n)
{
	if (t->cap - t->n < n) {
		if (t->cap >= BUF_MOST)
			cut_chunk(w, t);
		while (t->cap - t->n < n) {
			t->cap = t->cap ? t->cap * 2 : BUF_FIRST;
			t->buf = tl_realloc(t->buf, t->cap);
		}
	}
	t->idle = false;
	return t->buf + t->n;
}

static void add_text(struct tl_writer *w, struct task *t, const struct tl_strbuf *b)
{
	size_t n = b->n < TL_CHUNK_MOST / 2 ? b->n : 0;

	memcpy(room(w, t, n), tl_strbuf_text(b), n);
	t->n += n;
	w->size += n;
}

static void put_where(struct tl_strbuf *b, uint32_t func, const char *file, uint32_t line)
{
	tl_strbuf_printf(b, "where %x file=", func + 1);
	tl_writer_encode(b, file);
	tl_strbuf_printf(b, " line=%u\n", line);
}

uint32_t tl_writer_func(struct tl_writer *w, const struct tl_func_info *info)
{
	uint32_t func = w->funcs.n;
	struct tl_strbuf b = {0};
	const char *name = info->name;
	size_t at;

	/* dprofpp takes that one for the profiler's own writing. */
	if (name && info->pkg && !strcmp(info->pkg, "Devel::DProf") && !strcmp(name, "write"))
		name = "write_";
	tl_strbuf_printf(&b, "func %x ", func + 1);
	at = b.n;
	tl_text_name(&b, info->pkg, "main");
	tl_strbuf_putc(&b, ' ');
	tl_text_name(&b, name, "?");
	at = b.n - at;
	tl_strbuf_puts(&b, " module=");
	tl_writer_encode(&b, info->module);
	tl_strbuf_printf(&b, " addr=0x%llx\n", (unsigned long long)info->addr);
	if (info->file)
		put_where(&b, func, info->file, info->line);
	tl_vec_push(&w->funcs, (struct func){.line = tl_strbuf_take(&b), .name_len = at + 1});
	return func;
}

static void put_how(struct tl_writer *w, uint32_t func)
{
	const struct func *f = &w->funcs.at[func];

	tl_outbuf_printf(&w->spool.funcs, "how %x %s %s\n", func + 1, tl_how_names[f->how],
			 tl_self_names[f->self]);
}

static void first_use(struct tl_writer *w, uint32_t func)
{
	struct func *f = &w->funcs.at[func];

	f->used = true;
	tl_outbuf_puts(&w->spool.funcs, f->line);
	/* With room for the file and line that are told later. */
	w->size += strlen(f->line) + f->name_len + 128;
	free(f->line);
	f->line = NULL;
	if (f->how || f->self)
		put_how(w, func);
}

void tl_writer_how(struct tl_writer *w, uint32_t func, enum tl_how how, enum tl_self self)
{
	struct func *f;

	if (!func || func >= w->funcs.n)
		return;
	f = &w->funcs.at[func];
	if (f->how == how && f->self == self)
		return;
	f->how = how;
	f->self = self;
	if (f->used && !w->spool.err)
		put_how(w, func);
}

void tl_writer_line(struct tl_writer *w, uint32_t func, const char *file, uint32_t line)
{
	struct tl_strbuf b = {0};
	struct func *f;

	if (!func || func >= w->funcs.n)
		return;
	f = &w->funcs.at[func];
	if (f->line)
		tl_strbuf_puts(&b, f->line);
	put_where(&b, func, file, line);
	if (f->line) {
		free(f->line);
		f->line = tl_strbuf_take(&b);
	} else if (!w->spool.err) {
		tl_outbuf_puts(&w->spool.funcs, tl_strbuf_text(&b));
	}
	tl_strbuf_fini(&b);
}

static void put_names(struct tl_strbuf *b, const char *comm, const char *program)
{
	tl_strbuf_puts(b, " comm=");
	tl_writer_encode(b, comm);
	tl_strbuf_puts(b, " program=");
	tl_writer_encode(b, program);
	tl_strbuf_putc(b, '\n');
}

static void put_task_line(struct tl_writer *w, struct task *t, const char *comm,
			  const char *program)
{
	struct tl_strbuf b = {0};

	tl_strbuf_printf(&b, "#! task pid=%d tid=%d start=%llu", t->pid, t->tid,
			 (unsigned long long)t->start_ns);
	put_names(&b, comm, program);
	add_text(w, t, &b);
	tl_strbuf_fini(&b);
}

uint32_t tl_writer_task(struct tl_writer *w, const struct tl_task_info *info)
{
	uint32_t id = ++w->n_tasks;
	struct task *t;

	if (w->full || w->spool.err)
		return id;
	t = tl_calloc(1, sizeof *t);
	t->id = id;
	t->pid = info->pid;
	t->tid = info->tid;
	t->start_ns = info->start_ns;
	tl_map_put(&w->tasks, id, t);
	w->last = NULL;
	w->totals.tasks++;
	w->size += KEEP_TASK;
	put_task_line(w, t, info->comm, info->program);
	return id;
}

void tl_writer_task_name(struct tl_writer *w, uint32_t task, const char *comm, const char *program)
{
	struct task *t = task_of(w, task);
	struct tl_strbuf b = {0};

	if (!t)
		return;
	if (!t->marked && !t->seq) {
		w->size -= t->n;
		t->n = 0;
		put_task_line(w, t, comm, program);
		return;
	}
	tl_strbuf_puts(&b, "#! name");
	put_names(&b, comm, program);
	add_text(w, t, &b);
	tl_strbuf_fini(&b);
}

/* What a mark of 1997 takes, at most: its readings are below this file's sums. */
static size_t size_1997(const struct tl_writer *w, uint32_t func)
{
	char digits[21];
	size_t n = tl_text_u64(digits, w->totals.user_ns) - digits;

	n += tl_text_u64(digits, w->totals.sys_ns) - digits;
	n += tl_text_u64(digits, w->totals.wall_ns) - digits;
	return n + w->funcs.at[func].name_len + 6;
}

static void emit_delta(struct tl_writer *w, struct task *t)
{
	char *p, *from;

	if (!(t->user_ns | t->sys_ns | t->wall_ns))
		return;
	from = room(w, t, TL_TEXT_DELTA_MAX);
	p = tl_text_delta(from, t->user_ns, t->sys_ns, t->wall_ns);
	t->n += p - from;
	if (w->dialect == TL_DIALECT_IDS)
		w->size += p - from;
	t->user_ns = t->sys_ns = t->wall_ns = 0;
}

static void emit(struct tl_writer *w, struct task *t, char sign, uint32_t func, unsigned flags)
{
	char *p, *from;

	emit_delta(w, t);
	from = room(w, t, TL_TEXT_MARK_MAX);
	p = tl_text_mark(from, sign, func, flags);
	t->n += p - from;
	t->marked = true;
	w->size += w->dialect == TL_DIALECT_IDS ? (size_t)(p - from) : size_1997(w, func);
	w->totals.marks++;
}

static void enter(struct tl_writer *w, struct task *t, uint32_t func, unsigned flags)
{
	if (!w->funcs.at[func].used)
		first_use(w, func);
	tl_frames_push(&t->open, func);
	w->open_frames++;
	emit(w, t, '+', func, flags);
}

/* FUNC is the innermost open one. */
static void leave(struct tl_writer *w, struct task *t, uint32_t func, unsigned flags)
{
	t->open.n--;
	w->open_frames--;
	if (flags & TL_MARK_FORCED)
		t->forced++;
	else if (flags & TL_MARK_UNWOUND)
		t->unwound++;
	emit(w, t, '-', func, flags);
}

static void task_end(struct tl_writer *w, struct task *t, const char *how)
{
	struct tl_strbuf b = {0};

	while (t->open.n)
		leave(w, t, tl_frames_top(&t->open), TL_MARK_FORCED);
	emit_delta(w, t);
	tl_strbuf_puts(&b, "#! end how=");
	tl_writer_encode(&b, how);
	tl_strbuf_printf(&b, " forced=%llu unwound=%llu lost=%llu\n", (unsigned long long)t->forced,
			 (unsigned long long)t->unwound, (unsigned long long)t->lost);
	add_text(w, t, &b);
	tl_strbuf_fini(&b);
	cut_chunk(w, t);
	w->totals.forced += t->forced;
	w->totals.unwound += t->unwound;
	tl_map_remove(&w->tasks, t->id);
	w->last = NULL;
	tl_frames_fini(&t->open);
	free(t->buf);
	free(t);
}

/* The map must not change while it is walked. */
void tl_writer_end_all(struct tl_writer *w, const char *how)
{
	TL_VEC(struct task *) all = {0};
	size_t pos = 0;
	uint64_t key;
	void *t;

	while (tl_map_next(&w->tasks, &pos, &key, &t))
		tl_vec_push(&all, t);
	for (size_t i = 0; i < all.n; i++)
		task_end(w, all.at[i], how);
	tl_vec_fini(&all);
}

static void check_size(struct tl_writer *w)
{
	size_t frame = KEEP_FRAME;

	if (w->dialect == TL_DIALECT_1997)
		frame += 3 * 20 + 64;
	if (w->size + w->open_frames * frame <= w->max_size)
		return;
	w->full = true;
	tl_writer_end_all(w, "truncated");
	tl_writer_note(w, "truncated", "reason=max-size");
}

static void lose(struct tl_writer *w, struct task *t)
{
	w->totals.lost++;
	if (t)
		t->lost++;
}

static void leave_to(struct tl_writer *w, struct task *t, uint32_t func, unsigned flags)
{
	size_t down = tl_frames_down_to(&t->open, func);

	assert(down == 1);
	if (!down) {
		lose(w, t);
		return;
	}
	while (--down)
		leave(w, t, tl_frames_top(&t->open), TL_MARK_UNWOUND);
	leave(w, t, func, flags);
}

void tl_writer_mark(struct tl_writer *w, uint32_t task, enum tl_mark_kind kind, uint32_t func,
		    unsigned flags, uint64_t user_ns, uint64_t sys_ns, uint64_t wall_ns)
{
	struct task *t;

	if (w->full || w->spool.err)
		return;
	t = task_of(w, task);
	if (!t || (kind != TL_MARK_PAUSE && (!func || func >= w->funcs.n))) {
		lose(w, t);
		return;
	}
	t->user_ns += user_ns;
	t->sys_ns += sys_ns;
	t->wall_ns += wall_ns;
	w->totals.user_ns += user_ns;
	w->totals.sys_ns += sys_ns;
	w->totals.wall_ns += wall_ns;
	if (kind == TL_MARK_ENTER)
		enter(w, t, func, flags);
	else if (kind == TL_MARK_EXIT && tl_frames_top(&t->open) == func)
		leave(w, t, func, flags);
	else if (kind == TL_MARK_EXIT)
		leave_to(w, t, func, flags);
	if (w->max_size)
		check_size(w);
}

void tl_writer_task_end(struct tl_writer *w, uint32_t task, const char *how)
{
	struct task *t = task_of(w, task);

	if (t)
		task_end(w, t, how);
}

void tl_writer_note(struct tl_writer *w, const char *key, const char *text)
{
	struct tl_strbuf b = {0};

	tl_strbuf_puts(&b, "note ");
	tl_text_line(&b, key);
	if (*text)
		tl_strbuf_putc(&b, ' ');
	tl_text_line(&b, text);
	w->size += b.n;
	tl_spool_head(&w->spool, tl_strbuf_text(&b));
	tl_strbuf_fini(&b);
}

void tl_writer_run(struct tl_writer *w, const char *text)
{
	struct tl_strbuf b = {0};

	tl_strbuf_puts(&b, "run ");
	tl_text_line(&b, text);
	tl_spool_head(&w->spool, tl_strbuf_text(&b));
	tl_strbuf_fini(&b);
}

void tl_writer_over(struct tl_writer *w, int64_t user_ns, int64_t sys_ns, int64_t wall_ns,
		    uint64_t tests)
{
	char line[128];

	snprintf(line, sizeof line, "over %lld %lld %lld %llu", (long long)user_ns,
		 (long long)sys_ns, (long long)wall_ns, (unsigned long long)tests);
	tl_spool_head(&w->spool, line);
}

/* A task that wrote nothing since the last time gives its memory back. */
int tl_writer_flush(struct tl_writer *w)
{
	size_t pos = 0;
	uint64_t key;
	void *v;

	while (tl_map_next(&w->tasks, &pos, &key, &v)) {
		struct task *t = v;

		cut_chunk(w, t);
		if (t->idle && t->buf) {
			free(t->buf);
			t->buf = NULL;
			t->cap = 0;
		}
		t->idle = true;
	}
	return tl_spool_flush(&w->spool);
}

bool tl_writer_truncated(const struct tl_writer *w)
{
	return w->full;
}

void tl_writer_totals(const struct tl_writer *w, struct tl_writer_totals *out)
{
	*out = w->totals;
}

static void writer_free(struct tl_writer *w)
{
	for (size_t i = 0; i < w->funcs.n; i++)
		free(w->funcs.at[i].line);
	tl_vec_fini(&w->funcs);
	tl_map_fini(&w->tasks);
	tl_spool_close(&w->spool);
	free(w->target);
	free(w);
}

void tl_writer_discard(struct tl_writer *w)
{
	tl_writer_end_all(w, "discarded");
	tl_spool_remove(w->spool.dir);
	writer_free(w);
}

/* What the person is told when not all of it became a profile. */
static int explain(const struct tl_writer *w, int spooled, int r, bool partial)
{
	const char *dir = w->spool.dir;

	if (r < 0)
		return tl_fail(r,
			       "%s; what was recorded is in %s: find room or another place for it, "
			       "then trapline recover %s",
			       tl_error_text(), dir, dir);
	if (partial)
		return tl_fail(-ENOSPC,
			       "cannot write all of %s: no room; it holds the first part, and %s "
			       "what was recorded: free some space, then trapline recover %s",
			       w->target, dir, dir);
	if (spooled < 0)
		return tl_fail(spooled,
			       "%s; recording ended there, and %s holds what came before: free "
			       "some space and record again, or limit it with --max-size",
			       w->spool.why, w->target);
	return TL_OK;
}

int tl_writer_finish(struct tl_writer *w)
{
	struct tl_assembly a = {.dir = w->spool.dir, .target = w->target, .straight = w->straight};
	bool partial = false;
	int r, spooled;

	tl_writer_end_all(w, "stopped");
	spooled = tl_spool_flush(&w->spool);
	if (spooled == TL_OK)
		a.totals = &w->totals;
	r = tl_assemble(&a, &partial);
	if (r == TL_OK && !partial)
		tl_spool_remove(w->spool.dir);
	r = explain(w, spooled, r, partial);
	writer_free(w);
	return r;
}
