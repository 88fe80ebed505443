/* session/session.h - the tasks we trace, and how their stops are answered.
 *
 * A session owns tasks (threads), processes and spaces (address spaces), keeps them
 * in step with the kernel through fork, vfork, clone, exec and death, and places
 * tasks on CPUs. What a stop means for measuring is its engine's affair: the session
 * calls it through a const table. One thread, the one that began it, makes all calls:
 * ptrace(2) belongs to a thread. */
#ifndef TL_SESSION_SESSION_H
#define TL_SESSION_SESSION_H

#include <sched.h>
#include <signal.h>
#include <time.h>

#include "arch/arch.h"
#include "base/map.h"
#include "base/types.h"
#include "base/vec.h"
#include "target/procfs.h"
#include "target/wait.h"

struct tl_session;

/* One set of page tables. Several processes share it between vfork and exec, or by
 * clone(CLONE_VM). Breakpoints live here. */
struct tl_space {
	unsigned processes;
	int mem_fd;	  /* /proc/PID/mem */
	pid_t any;	  /* some process that has it, for /proc */
	uint64_t changes; /* how often its code was changed by us: see tl_task.changes */
	void *client;	  /* the engine's */
};

struct tl_process {
	pid_t pid;
	struct tl_space *space;
	unsigned tasks;		   /* alive and traced */
	bool ignored;		   /* traced only for its children, or not followed */
	bool leaving;		   /* a vfork child that is let go at its exec */
	clockid_t cpu_clock;
	char program[TL_COMM_MAX]; /* base name of its executable */
	void *client;
};

enum tl_task_state {
	TL_TASK_RUNNING,
	TL_TASK_STOPPED,   /* reaped, or at a trap whose pc is put right already */
	TL_TASK_LISTENING, /* stopped by job control */
	TL_TASK_ORPHAN,	   /* its first stop came before its parent's event */
};

struct tl_task {
	pid_t tid;
	struct tl_process *process; /* NULL for an orphan */
	enum tl_task_state state;
	tl_vaddr site_at; /* the site it stopped at, while that is handled; the engine's */
	bool reaped; /* its current stop, when it is a trap: see target/wait.h */
	bool fresh;  /* born traced; its first stop is still to come */
	bool ended;  /* the engine knows: it passed its exit event */
	int pending_signal;
	/* Clocks: wall CLOCK_MONOTONIC, CPU see clock_task_cpu(). */
	uint64_t seen_ns, resumed_ns;	  /* this stop seen; last resumed */
	uint64_t cpu_ns, last_cpu_ns;	  /* at this stop; at the previous one */
	uint64_t user_total_ns, sys_total_ns; /* rusage at this stop */
	int schedstat_fd;		  /* -1 while the process has one task */
	uint64_t changes;		  /* of its space, when last resumed */
	/* Placement. */
	unsigned stops_in_tick, calm_ticks;
	bool placed;
	cpu_set_t own_cpus; /* its mask while placed */
	void *client;
};

/* How a stop handler wants the task to go on. */
enum tl_go {
	TL_GO_ON,     /* resume, delivering task->pending_signal */
	TL_GO_LISTEN, /* stay stopped, see SIGCONT */
	TL_GO_AWAY,   /* detach, delivering task->pending_signal */
	TL_GO_GONE,   /* it is dead or dying: nothing to resume */
};

/* What the engine does at each of these. NULL: nothing. All return < 0 only for errors
 * that must end the session. */
struct tl_engine_ops {
	/* A task stopped for whatever reason: its clocks are read. Before the handlers below. */
	void (*stopped)(void *engine, struct tl_task *t);
	/* It is about to be resumed; the last chance to tell of the time it ran. */
	void (*resuming)(void *engine, struct tl_task *t);
	/* A trap. OURS: it was at a site, the pc is put right. */
	int (*trap)(void *engine, struct tl_task *t, const tl_regs *regs, bool *ours);
	int (*process_began)(void *engine, struct tl_process *p); /* launched and exec'ed, attached */
	/* CHILD's space is a copy of PARENT's, breakpoints and all. STALE: our changes may have
	 * come after the copy was made. */
	int (*space_copied)(void *engine, struct tl_space *parent, struct tl_space *child, bool stale);
	void (*space_ended)(void *engine, struct tl_space *sp);
	/* PARENT: the task that made it and whose stack it may share; NULL after launch,
	 * exec and attach. */
	int (*task_began)(void *engine, struct tl_task *t, const struct tl_task *parent);
	/* Dying, but still with registers and clocks; or gone already. */
	void (*task_ended)(void *engine, struct tl_task *t, const char *how);
	/* The only task left has a new image; its space is new, began will follow. */
	void (*exec)(void *engine, struct tl_task *t);
	/* Whether to measure this program at all; false: traced for its children only. */
	bool (*wants)(void *engine, const struct tl_process *p);
	/* Puts back every byte of SP and no task inside our code: before letting go. */
	int (*clean_space)(void *engine, struct tl_space *sp);
	/* A cleaned space whose tasks are all accounted for; BY is stopped in user mode and may
	 * make a system call, NULL: nobody could be had. QUIET: nobody is in our code. */
	void (*forget_space)(void *engine, struct tl_space *sp, struct tl_task *by, bool quiet);
	/* T is stopped for good, every byte is back: if it is inside code of ours, it is put where
	 * the program would be. */
	void (*evict)(void *engine, struct tl_task *t);
	/* T is about to run a signal handler, whose frame will hold its pc. */
	void (*interrupted)(void *engine, struct tl_task *t);
	/* Whether PC is in code of ours. */
	bool (*in_our_code)(void *engine, const struct tl_space *sp, tl_vaddr pc);
	int (*tick)(void *engine, uint64_t now_ns);
	/* A signal to us: INT, TERM, HUP, USR1, USR2. */
	int (*signalled)(void *engine, int signal);
};

struct tl_session_options {
	bool kill_with_us; /* the kernel is to kill the targets when we die */
	bool follow;
	int cpu; /* where this thread sits and hot tasks are moved to; -1: nobody is moved */
};

enum tl_end {
	TL_END_NOT,
	TL_END_LEAVE,  /* let everybody go: -d, Ctrl-C when attached */
	TL_END_FAILED, /* an error of ours, session->error: likewise */
};

struct tl_session {
	struct tl_session_options options;
	const struct tl_engine_ops *ops;
	void *engine;
	struct tl_map tasks;	 /* tid -> struct tl_task */
	struct tl_map processes; /* pid -> struct tl_process */
	pid_t leader;		 /* launched: its pid, and once ended its wait status */
	bool leader_ended;
	int leader_status;
	enum tl_end end;
	int error; /* why TL_END_FAILED; its text is tl_error_text() */
	/* Waiting. */
	pid_t lone;	     /* the only task that trapped in the last LONE_RUN stops */
	unsigned lone_run;
	/* Placement. */
	int cpu;	     /* where this thread is pinned; -1: not */
	cpu_set_t own_cpus;  /* this thread's mask before */
	timer_t timer;
	bool timer_armed;
	TL_VEC(struct tl_task *) held; /* reaped, pc put right, to be resumed together */
	uint64_t stops; /* traps handled */
};

int tl_session_init(struct tl_session *s, const struct tl_session_options *o,
		    const struct tl_engine_ops *ops, void *engine);
/* Frees; every task must have been let go. */
void tl_session_fini(struct tl_session *s);

/* session/launch.c. ARGV[0] is searched in PATH as execvp does. UID -1: stay. When the
 * program cannot be started *LAUNCH_ERROR is its errno and the result negative. On success the
 * target sits at its exec event and the engine knows of it. */
struct tl_launch {
	char *const *argv;
	uid_t uid;
	gid_t gid;
	const char *user; /* for initgroups; NULL */
	/* What the target is to inherit: we changed our own. */
	const sigset_t *sigmask;
};
int tl_session_launch(struct tl_session *s, const struct tl_launch *l, int *launch_error);
/* session/attach.c. Nobody is stopped by it. */
int tl_session_attach(struct tl_session *s, pid_t pid);
/* session/loop.c. Until no task is left, or s->end. */
int tl_session_run(struct tl_session *s);
/* session/detach.c. Cleans all spaces and lets everybody go; then nothing of ours is left. */
int tl_session_leave(struct tl_session *s);
/* Ends tl_session_run() soon. ERROR: the negative errno of TL_END_FAILED. */
void tl_session_end(struct tl_session *s, enum tl_end how, int error);

/* session/task.c, process.c, space.c: used by the files above and by engines. */
struct tl_task *tl_task_of(const struct tl_session *s, pid_t tid);
struct tl_task *tl_task_add(struct tl_session *s, pid_t tid, struct tl_process *p);
void tl_task_remove(struct tl_session *s, struct tl_task *t, const char *how);
struct tl_process *tl_process_of(const struct tl_session *s, pid_t pid);
struct tl_process *tl_process_add(struct tl_session *s, pid_t pid, struct tl_space *sp);
void tl_process_drop(struct tl_session *s, struct tl_process *p); /* when its last task went */
/* Its executable's base name, as it is now. */
void tl_process_read_program(struct tl_process *p);
struct tl_space *tl_space_new(pid_t pid);
void tl_space_unref(struct tl_session *s, struct tl_space *sp);
/* Reads the task's clocks: now, in whatever state. */
uint64_t tl_now_ns(void);
uint64_t tl_task_read_cpu(struct tl_task *t);
/* The process got its second task, or its clocks must be started anew. */
void tl_task_start_clocks(struct tl_task *t, uint64_t now_ns);

/* session/place.c: tasks that trap often sit on the tracing thread's CPU. */
void tl_place_init(struct tl_session *s);
void tl_place_hot(struct tl_session *s, struct tl_task *t); /* stopped, and trapped again */
void tl_place_born(const struct tl_task *parent, pid_t child);
void tl_place_tick(struct tl_session *s);
void tl_place_release(struct tl_task *t);
void tl_place_fini(struct tl_session *s);

/* session/stops.c: one handler per kind of stop, called with the stop reaped. */
typedef enum tl_go tl_stop_handler(struct tl_session *s, struct tl_task *t, struct tl_stop *stop);
extern tl_stop_handler *const tl_on_stop[TL_STOP_KINDS];
/* The one place that resumes. */
void tl_resume(struct tl_session *s, struct tl_task *t, enum tl_go go);
/* The leader's end is noted, whoever handles it. */
void tl_note_leader(struct tl_session *s, const struct tl_stop *stop);
/* Clocks and the engine's stopped(). */
void tl_stop_seen(struct tl_session *s, struct tl_task *t, const struct tl_stop *stop, uint64_t now);

#endif
