/* engine/exact.h - every call of the chosen functions, by breakpoints.
 *
 * A client of the session: it decides where breakpoints go, keeps each task's open
 * calls, and turns stops into records for its sink. */
#ifndef TL_ENGINE_EXACT_H
#define TL_ENGINE_EXACT_H

#include "base/map.h"
#include "engine/shadow.h"
#include "event/record.h"
#include "event/writer.h"
#include "probe/exits.h"
#include "probe/site.h"
#include "session/session.h"
#include "sym/modules.h"
#include "sym/select.h"
#include "unwind/unwind.h"

/* Where the records go: the recorder, or the calibration. */
struct tl_sink {
	uint32_t (*func)(void *ctx, const struct tl_func_info *info);
	uint32_t (*task)(void *ctx, const struct tl_task_info *info);
	void (*task_end)(void *ctx, uint32_t task, const char *how);
	/* SEEN_NS: CLOCK_MONOTONIC of the stop. */
	void (*push)(void *ctx, const struct tl_record *rec, uint64_t seen_ns);
};

/* A function of a file, in whatever processes map it. */
struct tl_function {
	const struct tl_func *func;
	struct tl_image *image; /* a reference of ours */
	uint32_t id;		/* the sink's, 0 until it was called */
	bool is_main;
	bool disarmed; /* by the valve */
	bool upper;    /* it called something that is no longer counted */
	uint64_t calls, stops, stops_before; /* stops_before: at the last tick */
	TL_VEC(struct tl_function *) parents; /* seen directly above it */
};

enum tl_role {
	TL_ROLE_MEASURE = 1,
	TL_ROLE_LOADER = 2, /* the dynamic linker tells that modules came or went */
	TL_ROLE_START = 4,  /* --start-on */
	TL_ROLE_STOP = 8,   /* --stop-on */
	TL_ROLE_WITHIN = 16,
};

/* A function in one space. */
struct tl_probe {
	struct tl_function *function;
	struct tl_module *module;
	struct tl_site *entry;
	unsigned roles;
	unsigned open; /* calls of it that are open now */
	bool walked, loops, use_return_site;
	TL_VEC(struct tl_site *) exits, returns; /* references */
};

/* What the engine knows of a space. */
struct tl_exact_space {
	struct tl_space *space;
	struct tl_modules modules;
	struct tl_sites sites;
	TL_VEC(struct tl_probe *) probes; /* owned */
	struct tl_unwinder *unwinder;
	tl_vaddr stub;	/* {0}: no room for one */
	bool slot_in_signal; /* a signal frame may point into our code */
};

struct tl_exact_task {
	struct tl_exact *exact;
	struct tl_task *task;
	uint32_t id; /* the sink's */
	struct tl_shadow shadow;
	bool pending; /* the time it ran is not told yet */
	bool unwind;  /* calls may be open that nobody saw begin */
	uint8_t cost; /* enum tl_stop_cost of this stop */
	unsigned within; /* open calls of --within */
	uint64_t wall_ran_ns, cpu_ran_ns, seen_before_ns;
};

struct tl_exact_options {
	const struct tl_select *select;
	const char *within, *start_on, *stop_on; /* patterns, NULL */
	const char *program;			 /* glob, NULL: all */
	unsigned depth;				 /* 0: no limit */
	bool valve;
	uint64_t delay_ns, duration_ns;
	bool launched; /* Ctrl-C is the target's; it is left running at the end */
	double stop_cost_ns; /* mean, both ways, beside the window: for the valve */
};

struct tl_exact {
	struct tl_exact_options options;
	struct tl_pattern *within, *start_on, *stop_on; /* the options', compiled; NULL */
	struct tl_session *session;
	const struct tl_sink *sink;
	void *sink_ctx;
	struct tl_image_cache *images;
	struct tl_map functions; /* const struct tl_func * -> struct tl_function, owned */
	struct tl_map refused;	 /* const struct tl_func *: could not be probed, said once */
	bool measuring;
	bool began; /* it was measured at some time */
	uint64_t start_ns;    /* of the run */
	uint64_t measured_ns; /* since when, while measuring */
	uint64_t run_ns;      /* measured before that */
	uint64_t window_ns;   /* sum of all windows in which a task was held */
	uint64_t probed;
	unsigned disarmed;
	char main_program[TL_COMM_MAX];
};

int tl_exact_init(struct tl_exact *e, const struct tl_exact_options *o, const struct tl_sink *sink,
		  void *sink_ctx);
extern const struct tl_engine_ops tl_exact_ops;
void tl_exact_fini(struct tl_exact *e);

/* engine/measure.c: begins and ends measuring in all spaces. */
int tl_measure_begin(struct tl_exact *e);
int tl_measure_end(struct tl_exact *e, const char *why);
int tl_measure_tick(struct tl_exact *e, uint64_t now_ns);
int tl_measure_signalled(struct tl_exact *e, int signal);
/* The record of what T ran since it was last resumed, read from outside. */
void tl_measure_flush(struct tl_exact *e, struct tl_task *t);

/* engine/probes.c: which functions, and their sites. */
int tl_probes_update(struct tl_exact *e, struct tl_exact_space *es);
/* Sites as they should be now, by roles and by whether we measure. */
int tl_probes_arm(struct tl_exact *e, struct tl_exact_space *es);
bool tl_probe_active(const struct tl_exact *e, const struct tl_probe *p, unsigned role);
/* Notes whether SITE should be armed: by the roles of its probe, and as an exit or return site. */
void tl_probes_settle(const struct tl_exact *e, struct tl_exact_space *es, struct tl_site *site);
/* The exits of P: once, when it is first entered. T: stopped, to map room for slots. */
int tl_probe_walk(struct tl_exact_space *es, struct tl_probe *p, struct tl_task *t);
int tl_probe_watch_return(struct tl_exact_space *es, struct tl_probe *p, struct tl_task *t,
			  uint64_t sp);
/* A disarmed function's exits, once nobody is inside it. */
void tl_probe_retire(const struct tl_exact *e, struct tl_exact_space *es, struct tl_probe *p);
struct tl_probe *tl_probe_holding(struct tl_exact_space *es, tl_vaddr pc);
/* Maps room for slots that is not yet there, by T, whose stop is at SITE_AT ({0}: elsewhere). */
int tl_probes_make_ready(struct tl_exact_space *es, struct tl_task *t, tl_vaddr site_at);
struct tl_exact_space *tl_exact_space_new(struct tl_space *sp);
int tl_exact_space_copy(struct tl_exact *e, struct tl_exact_space *from, struct tl_space *child);
void tl_exact_space_free(struct tl_exact_space *es);

/* engine/frames.c: tasks' open calls and their records. */
int tl_frames_task_began(struct tl_exact *e, struct tl_task *t, const struct tl_task *parent);
void tl_frames_task_ended(struct tl_exact *e, struct tl_task *t, const char *how);
void tl_frames_stopped(struct tl_exact *e, struct tl_task *t);
void tl_frames_resuming(struct tl_task *t);
int tl_frames_enter(struct tl_exact *e, struct tl_task *t, struct tl_probe *p, uint64_t sp);
void tl_frames_exit(struct tl_task *t, uint64_t sp);
void tl_frames_return(struct tl_task *t, uint64_t sp);
void tl_frames_close(struct tl_task *t, unsigned flags);
/* Opens what was open before we looked; REGS as the program would have them. ENTERING: its
 * innermost function is about to be entered by an event and is left to that. */
int tl_frames_find(struct tl_exact *e, struct tl_task *t, const tl_regs *regs, bool entering);

/* engine/valve.c: the safety valve of runs without --exact. */
int tl_valve_tick(struct tl_exact *e, uint64_t now_ns);

static inline struct tl_exact_space *tl_exact_space_of(const struct tl_space *sp)
{
	return sp->client;
}
static inline struct tl_exact_task *tl_exact_task_of(const struct tl_task *t)
{
	return t->client;
}

#endif
