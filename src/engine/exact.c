#include "engine/exact.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "target/ptrace.h"

static void on_stopped(void *engine, struct tl_task *t)
{
	tl_frames_stopped(engine, t);
}

static void on_resuming(void *engine, struct tl_task *t)
{
	(void)engine;
	tl_frames_resuming(t);
}

/* Frames that were open before measuring began are looked for at a task's first stop after it. */
static int find_open(struct tl_exact *e, struct tl_task *t, const tl_regs *regs,
		     const struct tl_site *site)
{
	tl_regs as_program = *regs;

	if (!tl_exact_task_of(t)->unwind || !e->measuring)
		return TL_OK;
	tl_arch_native()->set_pc(&as_program, site->at.u);
	return tl_frames_find(e, t, &as_program, site->entry && !site->exits);
}

static int on_entry(struct tl_exact *e, struct tl_task *t, struct tl_probe *p, const tl_regs *regs)
{
	int r = TL_OK;

	if (p->roles & TL_ROLE_LOADER)
		r = tl_probes_update(e, tl_exact_space_of(t->process->space));
	if (r >= 0 && (p->roles & TL_ROLE_STOP) && e->measuring)
		r = tl_measure_end(e, "stop-on");
	if (r >= 0 && (p->roles & TL_ROLE_START) && !e->measuring) {
		r = tl_measure_begin(e);
		if (r == TL_OK && tl_exact_task_of(t)->unwind)
			r = tl_frames_find(e, t, regs, true);
	}
	if (r >= 0 && e->measuring && (p->roles & TL_ROLE_MEASURE))
		r = tl_frames_enter(e, t, p, tl_arch_native()->sp(regs));
	return r;
}

/* One byte may be several things at once: where a call returns to, a function's first
 * instruction, and its last. */
static int dispatch(struct tl_exact *e, struct tl_task *t, struct tl_site *site, const tl_regs *regs)
{
	const struct tl_arch *arch = tl_arch_native();
	struct tl_exact_task *et = tl_exact_task_of(t);
	uint64_t sp = arch->sp(regs);
	struct tl_probe *p;
	int r = TL_OK;

	et->cost = site->entry ? TL_COST_ENTRY : TL_COST_EXIT;
	if ((r = find_open(e, t, regs, site)) != TL_OK)
		return r;
	if (site->returns && e->measuring)
		tl_frames_return(t, sp);
	p = site->entry;
	if (p) {
		p->function->stops++;
		if ((r = on_entry(e, t, p, regs)) != TL_OK)
			return r;
	}
	if (!site->exits || !e->measuring)
		return TL_OK;
	/* A branch that is not taken leaves nothing. */
	if (site->step.kind == TL_STEP_BRANCH &&
	    arch->step_target(&site->step, regs).u == site->step.next.u)
		return TL_OK;
	tl_frames_exit(t, sp);
	return TL_OK;
}

static int on_trap(void *engine, struct tl_task *t, const tl_regs *regs, bool *ours)
{
	const struct tl_arch *arch = tl_arch_native();
	struct tl_exact *e = engine;
	struct tl_exact_space *es = tl_exact_space_of(t->process->space);
	struct tl_site *site;
	tl_vaddr past;
	int r;

	site = es ? tl_site_at(&es->sites, (tl_vaddr){arch->pc(regs) - arch->gap_after_trap()}) : NULL;
	if (!site)
		return TL_OK;
	*ours = true;
	t->site_at = site->at;
	past = tl_site_past(&es->sites, site, regs);
	if (!past.u) {
		if ((r = tl_probes_make_ready(es, t, site->at)) != TL_OK) {
			/* Whoever cleans up puts the byte back: it goes on there. */
			tl_ptrace_set_pc(t->tid, site->at);
			return r;
		}
		past = tl_site_past(&es->sites, site, regs);
	}
	/* Safe against our death from here on: then look what it was. */
	if ((r = tl_ptrace_set_pc(t->tid, past)) != TL_OK || !t->client)
		return r;
	r = dispatch(e, t, site, regs);
	/* Room that had to be mapped on the way was mapped with the task at its site. */
	if (r == TL_OK && t->reaped)
		r = tl_ptrace_set_pc(t->tid, past);
	return r;
}

static struct tl_task *stopped_task_of(const struct tl_exact *e, const struct tl_process *p)
{
	struct tl_task *t = tl_task_of(e->session, p->pid);

	return t && t->state == TL_TASK_STOPPED ? t : NULL;
}

static int on_process_began(void *engine, struct tl_process *p)
{
	struct tl_exact *e = engine;
	struct tl_exact_space *es = tl_exact_space_of(p->space);
	struct tl_task *t = stopped_task_of(e, p);
	int r;

	if (es)
		return TL_OK;
	if (!e->main_program[0])
		memcpy(e->main_program, p->program, sizeof e->main_program);
	es = tl_exact_space_new(p->space);
	r = tl_probes_update(e, es);
	if (r == TL_OK && t)
		r = tl_probes_make_ready(es, t, (tl_vaddr){0});
	return r == TL_GONE ? TL_OK : r;
}

static int on_space_copied(void *engine, struct tl_space *parent, struct tl_space *child, bool stale)
{
	struct tl_exact_space *es = tl_exact_space_of(parent);
	int r;

	if (!es)
		return TL_OK;
	r = tl_exact_space_copy(engine, es, child);
	/* The copy was made when the parent's fork ran, which may lie before our last change. */
	if (r == TL_OK && stale)
		r = tl_sites_rewrite(&tl_exact_space_of(child)->sites);
	return r;
}

static void on_space_ended(void *engine, struct tl_space *sp)
{
	(void)engine;
	if (sp->client)
		tl_exact_space_free(sp->client);
	sp->client = NULL;
}

static int on_task_began(void *engine, struct tl_task *t, const struct tl_task *parent)
{
	return tl_frames_task_began(engine, t, parent);
}

static void on_task_ended(void *engine, struct tl_task *t, const char *how)
{
	tl_frames_task_ended(engine, t, how);
}

static void on_exec(void *engine, struct tl_task *t)
{
	tl_frames_task_ended(engine, t, "exec");
}

static bool on_wants(void *engine, const struct tl_process *p)
{
	const struct tl_exact *e = engine;

	return !e->options.program || fnmatch(e->options.program, p->program, 0) == 0;
}

static int on_clean_space(void *engine, struct tl_space *sp)
{
	struct tl_exact_space *es = tl_exact_space_of(sp);
	size_t pos = 0;
	uint64_t key;
	void *v;

	(void)engine;
	if (!es)
		return TL_OK;
	while (tl_map_next(&es->sites.map, &pos, &key, &v))
		tl_site_want(&es->sites, v, false);
	return tl_sites_apply(&es->sites);
}

static void on_forget_space(void *engine, struct tl_space *sp, struct tl_task *by, bool quiet)
{
	struct tl_exact_space *es = tl_exact_space_of(sp);
	int r;

	(void)engine;
	if (!es || !es->sites.scratch.areas.n)
		return;
	if (!quiet || es->slot_in_signal || !by || !es->stub.u) {
		tl_note("process %d keeps an idle page of ours: a task may still be in it", sp->any);
		return;
	}
	r = tl_scratch_unmap(&es->sites.scratch, by->tid, sp->mem_fd, es->stub);
	if (r < 0)
		tl_warn("process %d keeps a page of ours: %s", sp->any, tl_error_text());
}

/* The site whose slot holds PC; of a shared one any will do, they are alike. */
static struct tl_site *slot_owner(const struct tl_exact_space *es, tl_vaddr pc)
{
	size_t pos = 0;
	uint64_t key;
	void *v;

	while (tl_map_next(&es->sites.map, &pos, &key, &v)) {
		struct tl_site *site = v;
		uint64_t n = site->step.kind == TL_STEP_RETURN ? 1 : site->step.length;

		if (site->slot.u && pc.u - site->slot.u < n)
			return site;
	}
	return NULL;
}

static void on_evict(void *engine, struct tl_task *t)
{
	struct tl_exact_space *es = tl_exact_space_of(t->process->space);
	const struct tl_arch *arch = tl_arch_native();
	struct tl_site *site;
	struct tl_place place;
	tl_regs regs;

	(void)engine;
	if (tl_ptrace_get_regs(t->tid, &regs) != TL_OK ||
	    !tl_scratch_holds(&es->sites.scratch, (tl_vaddr){arch->pc(&regs)}))
		return;
	site = slot_owner(es, (tl_vaddr){arch->pc(&regs)});
	if (!site)
		return;
	place.pc = site->at;
	place.sp_add = 0;
	if (site->step.kind == TL_STEP_SLOT)
		place = tl_step_place(&site->step, arch->pc(&regs) - site->slot.u);
	arch->set_pc(&regs, place.pc.u);
	arch->set_sp(&regs, arch->sp(&regs) + place.sp_add);
	tl_ptrace_set_regs(t->tid, &regs);
}

/* A signal that comes while a task is held at a site is delivered with the pc on its slot. The
 * slot then must stay for as long as the handler may return to it. */
static void on_interrupted(void *engine, struct tl_task *t)
{
	struct tl_exact_space *es = tl_exact_space_of(t->process->space);
	tl_regs regs;

	(void)engine;
	if (!es->slot_in_signal && tl_ptrace_get_regs(t->tid, &regs) == TL_OK &&
	    tl_scratch_holds(&es->sites.scratch, (tl_vaddr){tl_arch_native()->pc(&regs)}))
		es->slot_in_signal = true;
}

static bool on_in_our_code(void *engine, const struct tl_space *sp, tl_vaddr pc)
{
	struct tl_exact_space *es = tl_exact_space_of(sp);

	(void)engine;
	return es && (tl_scratch_holds(&es->sites.scratch, pc) ||
		      (es->stub.u && pc.u - es->stub.u < TL_STUB_SIZE));
}

static int on_tick(void *engine, uint64_t now_ns)
{
	struct tl_exact *e = engine;
	int r = tl_measure_tick(e, now_ns);

	return r == TL_OK && e->options.valve && e->measuring ? tl_valve_tick(e, now_ns) : r;
}

static int on_signalled(void *engine, int signal)
{
	return tl_measure_signalled(engine, signal);
}

const struct tl_engine_ops tl_exact_ops = {
	.stopped = on_stopped,
	.resuming = on_resuming,
	.trap = on_trap,
	.process_began = on_process_began,
	.space_copied = on_space_copied,
	.space_ended = on_space_ended,
	.task_began = on_task_began,
	.task_ended = on_task_ended,
	.exec = on_exec,
	.wants = on_wants,
	.clean_space = on_clean_space,
	.forget_space = on_forget_space,
	.evict = on_evict,
	.interrupted = on_interrupted,
	.in_our_code = on_in_our_code,
	.tick = on_tick,
	.signalled = on_signalled,
};

static int compile(const char *pattern, struct tl_pattern **out)
{
	return pattern ? tl_pattern_new(pattern, out) : TL_OK;
}

int tl_exact_init(struct tl_exact *e, const struct tl_exact_options *o, const struct tl_sink *sink,
		  void *sink_ctx)
{
	int r;

	*e = (struct tl_exact){
		.options = *o,
		.sink = sink,
		.sink_ctx = sink_ctx,
		.images = tl_image_cache_new(),
		.start_ns = tl_now_ns(),
	};
	if ((r = compile(o->within, &e->within)) < 0 ||
	    (r = compile(o->start_on, &e->start_on)) < 0 ||
	    (r = compile(o->stop_on, &e->stop_on)) < 0)
		return r;
	e->measuring = !o->start_on && !o->delay_ns;
	e->measured_ns = e->start_ns;
	/* After attaching, calls are open that nobody saw begin. */
	e->began = !o->launched || !e->measuring;
	return TL_OK;
}

void tl_exact_fini(struct tl_exact *e)
{
	size_t pos = 0;
	uint64_t key;
	void *v;

	while (tl_map_next(&e->functions, &pos, &key, &v)) {
		struct tl_function *f = v;

		tl_vec_fini(&f->parents);
		tl_image_unref(f->image);
		free(f);
	}
	tl_map_fini(&e->functions);
	pos = 0;
	while (tl_map_next(&e->refused, &pos, &key, &v))
		free(v);
	tl_map_fini(&e->refused);
	tl_pattern_free(e->within);
	tl_pattern_free(e->start_on);
	tl_pattern_free(e->stop_on);
	tl_image_cache_free(e->images);
}
