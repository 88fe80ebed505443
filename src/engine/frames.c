#include "engine/exact.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "target/mem.h"

enum { STACK_COPY = 256 << 10, FRAMES_MOST = 4096, MAIN_STACK_GROWTH = 1 << 30 };

static void emit(struct tl_exact_task *et, enum tl_mark_kind kind, uint32_t func, unsigned flags)
{
	struct tl_exact *e = et->exact;
	const struct tl_task *t = et->task;
	struct tl_record rec = {.task = et->id, .func = func, .kind = kind, .flags = flags,
				.cost = et->cost};

	if (!et->id)
		return;
	if (et->pending) {
		rec.wall_ran_ns = et->wall_ran_ns;
		rec.cpu_ran_ns = et->cpu_ran_ns;
		rec.user_total_ns = t->user_total_ns;
		rec.sys_total_ns = t->sys_total_ns;
		et->pending = false;
	} else {
		rec.flags |= TL_REC_SAME_STOP;
	}
	e->sink->push(e->sink_ctx, &rec, t->seen_ns);
}

static void opened(void *ctx, const struct tl_frame *f, unsigned flags)
{
	const struct tl_probe *p = f->probe;

	emit(ctx, TL_MARK_ENTER, p->function->id, flags);
}

static void closed(void *ctx, const struct tl_frame *f, unsigned flags)
{
	const struct tl_probe *p = f->probe;

	emit(ctx, TL_MARK_EXIT, p->function->id, flags);
}

static void left(void *ctx, const struct tl_frame *f)
{
	struct tl_exact_task *et = ctx;
	struct tl_probe *p = f->probe;

	if (p->roles & TL_ROLE_WITHIN)
		et->within--;
	if (--p->open == 0 && p->function->disarmed)
		tl_probe_retire(et->exact, tl_exact_space_of(et->task->process->space), p);
}

static const struct tl_shadow_ops shadow_ops = {opened, closed, left};

static void *same_in(void *ctx, void *probe)
{
	struct tl_exact_space *es = ctx;
	struct tl_probe *p = probe;
	struct tl_site *site = tl_site_at(&es->sites, p->entry->at);

	p = site ? site->entry : NULL;
	if (p)
		p->open++;
	return p;
}

int tl_frames_task_began(struct tl_exact *e, struct tl_task *t, const struct tl_task *parent)
{
	struct tl_exact_task *et = tl_calloc(1, sizeof *et);
	struct tl_proc_status st = {.comm = ""};
	struct tl_task_info info;

	tl_proc_status(t->tid, &st);
	*et = (struct tl_exact_task){.exact = e, .task = t, .cost = TL_COST_NONE};
	t->client = et;
	tl_shadow_init(&et->shadow, &shadow_ops, et);
	info = (struct tl_task_info){
		.pid = t->process->pid,
		.tid = t->tid,
		.start_ns = t->seen_ns - e->start_ns,
		.comm = st.comm,
		.program = t->process->program,
	};
	et->id = e->sink->task(e->sink_ctx, &info);
	/* A process made by fork or vfork goes on inside its parent's calls. */
	if (parent && parent->process != t->process && parent->client && e->measuring)
		tl_shadow_inherit(&et->shadow, &tl_exact_task_of(parent)->shadow, same_in,
				  tl_exact_space_of(t->process->space));
	if (!parent)
		et->unwind = e->began;
	return TL_OK;
}

void tl_frames_task_ended(struct tl_exact *e, struct tl_task *t, const char *how)
{
	struct tl_exact_task *et = tl_exact_task_of(t);

	if (!et)
		return;
	tl_shadow_close_all(&et->shadow, TL_MARK_FORCED);
	if (et->pending && e->measuring)
		emit(et, TL_MARK_PAUSE, 0, 0);
	e->sink->task_end(e->sink_ctx, et->id, how);
	tl_shadow_fini(&et->shadow);
	free(et);
	t->client = NULL;
}

void tl_frames_stopped(struct tl_exact *e, struct tl_task *t)
{
	struct tl_exact_task *et = tl_exact_task_of(t);

	if (!et)
		return;
	if (t->resumed_ns > et->seen_before_ns)
		e->window_ns += t->resumed_ns - et->seen_before_ns;
	et->seen_before_ns = t->seen_ns;
	et->cost = TL_COST_OTHER;
	et->pending = e->measuring;
	et->wall_ran_ns = t->seen_ns > t->resumed_ns ? t->seen_ns - t->resumed_ns : 0;
	et->cpu_ran_ns = t->cpu_ns > t->last_cpu_ns ? t->cpu_ns - t->last_cpu_ns : 0;
}

void tl_frames_resuming(struct tl_task *t)
{
	struct tl_exact_task *et = tl_exact_task_of(t);

	if (et && et->pending)
		emit(et, TL_MARK_PAUSE, 0, 0);
}

void tl_measure_flush(struct tl_exact *e, struct tl_task *t)
{
	struct tl_exact_task *et = tl_exact_task_of(t);

	if (!et || t->state == TL_TASK_STOPPED)
		return;
	t->seen_ns = tl_now_ns();
	t->cpu_ns = tl_task_read_cpu(t);
	tl_frames_stopped(e, t);
	et->cost = TL_COST_NONE;
	emit(et, TL_MARK_PAUSE, 0, 0);
	t->resumed_ns = t->seen_ns;
	t->last_cpu_ns = t->cpu_ns;
}

/* The main thread's stack grows downwards: it may be anywhere above its lower neighbour. */
static void add_stack(struct tl_exact_task *et, uint64_t sp)
{
	uint64_t lo = sp & -4096ull, hi = lo + 4096, below = 0;
	struct tl_maps maps;

	if (tl_maps_read(et->task->tid, &maps) == TL_OK) {
		for (size_t i = 0; i < maps.n; below = maps.at[i].hi.u, i++) {
			const struct tl_mapping *m = &maps.at[i];

			if (sp < m->lo.u || sp >= m->hi.u)
				continue;
			lo = m->lo.u;
			hi = m->hi.u;
			if (!strcmp(m->path, "[stack]"))
				lo = below > lo - MAIN_STACK_GROWTH ? below :
								      lo - MAIN_STACK_GROWTH;
		}
		tl_maps_fini(&maps);
	}
	tl_shadow_add_stack(&et->shadow, lo, hi);
}

static void be_on(struct tl_exact_task *et, uint64_t sp)
{
	if (!tl_shadow_on(&et->shadow, sp))
		add_stack(et, sp);
}

static void note_parent(struct tl_function *f, struct tl_function *parent)
{
	if (f->parents.n && f->parents.at[f->parents.n - 1] == parent)
		return;
	for (size_t i = 0; i < f->parents.n; i++) {
		if (f->parents.at[i] != parent)
			continue;
		/* The next one will be found at once. */
		f->parents.at[i] = f->parents.at[f->parents.n - 1];
		f->parents.at[f->parents.n - 1] = parent;
		return;
	}
	tl_vec_push(&f->parents, parent);
}

static void name_function(struct tl_exact *e, struct tl_exact_task *et, struct tl_probe *p)
{
	struct tl_function *f = p->function;
	const char *program = et->task->process->program;
	struct tl_func_info info = {
		.pkg = !f->is_main			       ? tl_image_short_name(f->image) :
		       strcmp(program, e->main_program) ? program :
							     "main",
		/* With its parameters, unless more had to be added to tell it apart. */
		.name = strcmp(f->func->name, f->func->bare) ? f->func->name : f->func->full,
		.module = tl_image_path(f->image),
		.addr = f->func->entry.u,
	};

	f->id = e->sink->func(e->sink_ctx, &info);
}

static bool is_shown(const struct tl_exact *e, const struct tl_exact_task *et)
{
	if (e->options.within && !et->within)
		return false;
	return !e->options.depth || et->shadow.block.n < e->options.depth;
}

int tl_frames_enter(struct tl_exact *e, struct tl_task *t, struct tl_probe *p, uint64_t sp)
{
	struct tl_exact_task *et = tl_exact_task_of(t);
	struct tl_exact_space *es = tl_exact_space_of(t->process->space);
	const struct tl_frame *top;
	int r = TL_OK;

	if (!p->function->id)
		name_function(e, et, p);
	if (!p->walked)
		r = tl_probe_walk(es, p, t);
	if (r == TL_OK && p->use_return_site)
		r = tl_probe_watch_return(es, p, t, sp);
	if (r != TL_OK)
		return r;
	be_on(et, sp);
	p->open++;
	if (p->roles & TL_ROLE_WITHIN)
		et->within++;
	if (tl_shadow_enter(&et->shadow, sp, p, p->loops, is_shown(e, et)) == TL_ENTERED_LOOP) {
		p->open--;
		if (p->roles & TL_ROLE_WITHIN)
			et->within--;
		return TL_OK;
	}
	p->function->calls++;
	top = tl_shadow_top(&et->shadow);
	if (et->shadow.current->frames.n > 1)
		note_parent(p->function, ((struct tl_probe *)top[-1].probe)->function);
	return TL_OK;
}

void tl_frames_exit(struct tl_task *t, uint64_t sp)
{
	struct tl_exact_task *et = tl_exact_task_of(t);

	be_on(et, sp);
	tl_shadow_exit(&et->shadow, sp);
}

void tl_frames_return(struct tl_task *t, uint64_t sp)
{
	struct tl_exact_task *et = tl_exact_task_of(t);

	be_on(et, sp);
	tl_shadow_return(&et->shadow, sp);
}

void tl_frames_close(struct tl_task *t, unsigned flags)
{
	struct tl_exact_task *et = tl_exact_task_of(t);

	if (et)
		tl_shadow_close_all(&et->shadow, flags);
}

static size_t copy_stack(struct tl_task *t, uint64_t sp, uint8_t *buf)
{
	size_t n = STACK_COPY;

	/* Near the stack's end a whole copy fails: less is there. */
	while (n >= 4096) {
		size_t got = tl_mem_read(t->process->space->mem_fd, (tl_vaddr){sp}, buf, n);

		if (got)
			return got;
		n /= 2;
	}
	return tl_mem_read(t->process->space->mem_fd, (tl_vaddr){sp}, buf, 4096 - sp % 4096);
}

static int open_found(struct tl_exact *e, struct tl_task *t, const struct tl_unwound *f)
{
	struct tl_exact_task *et = tl_exact_task_of(t);
	struct tl_exact_space *es = tl_exact_space_of(t->process->space);
	struct tl_probe *p = tl_probe_holding(es, (tl_vaddr){f->pc.u - !f->in_signal});
	uint64_t sp = f->cfa.u - sizeof(uint64_t);
	int r;

	if (!p || !tl_probe_active(e, p, TL_ROLE_MEASURE))
		return TL_OK;
	if (!p->function->id)
		name_function(e, et, p);
	if (!p->walked && (r = tl_probe_walk(es, p, t)) != TL_OK)
		return r;
	if (p->use_return_site && (r = tl_probe_watch_return(es, p, t, sp)) != TL_OK)
		return r;
	p->open++;
	if (p->roles & TL_ROLE_WITHIN)
		et->within++;
	tl_shadow_found(&et->shadow, sp, p, is_shown(e, et));
	return TL_OK;
}

int tl_frames_find(struct tl_exact *e, struct tl_task *t, const tl_regs *regs, bool entering)
{
	struct tl_exact_task *et = tl_exact_task_of(t);
	struct tl_exact_space *es = tl_exact_space_of(t->process->space);
	uint64_t sp = tl_arch_native()->sp(regs), base = sp - tl_arch_native()->red_zone;
	struct tl_stack_copy copy = {.regs = *regs, .base = {base}};
	uint8_t *bytes = tl_malloc(STACK_COPY);
	struct tl_unwound *frames = tl_calloc(FRAMES_MOST, sizeof *frames);
	bool complete;
	size_t n;
	int r = TL_OK;

	et->unwind = false;
	copy.bytes = bytes;
	copy.n = copy_stack(t, base, bytes);
	n = tl_unwind(es->unwinder, &copy, frames, FRAMES_MOST, &complete);
	if (!complete)
		tl_debug("task %d: its stack could only be followed for %zu frames", t->tid, n);
	be_on(et, sp);
	/* Outermost first; the innermost is about to be entered by the event itself. */
	for (size_t i = n; i-- > (entering ? 1 : 0) && r == TL_OK;)
		r = open_found(e, t, &frames[i]);
	free(frames);
	free(bytes);
	return r;
}
