/* engine/options.h - everything `trapline record' can be told.
 *
 * The command line fills it in and checks it; the engine reads it. All strings
 * and arrays are borrowed: they outlive tl_run(). Zero is the default of every
 * member but `follow', `pin' and `live', whose defaults are noted there.
 * Knows: what was asked for. Does not know: how it is done. */
#ifndef TL_ENGINE_OPTIONS_H
#define TL_ENGINE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "event/writer.h"
#include "sym/select.h"

enum tl_pin {
	TL_PIN_AUTO,  /* hot tasks and their tracing thread share a CPU (the default) */
	TL_PIN_NEVER, /* nobody's affinity is touched */
};

/* A user to launch as; only when `set'. */
struct tl_run_user {
	bool set;
	const char *name; /* for initgroups(3), USER and LOGNAME */
	const char *home;
	uid_t uid;
	gid_t gid;
};

struct tl_run_options {
	/* -o, $TRAPLINE_OUT, tmon.out: a path, never NULL */
	const char *output;

	/* Attach to these processes, and follow their children from then on (-p).
	 * Without any, argv is launched; never both. */
	const pid_t *pids;
	size_t n_pids;

	/* The program and its arguments, NULL-terminated; NULL when attaching. The
	 * program is looked up in PATH as execvp(3) does. */
	char *const *argv;
	struct tl_run_user user; /* -u: launch as that user */

	uint64_t delay_ns;    /* --delay: measure from this long after start or attach */
	uint64_t duration_ns; /* -d: measure for this long, after the delay; 0: to the end.
			       * A launched target is then left running and waited for */

	/* -f -x -l --source; never NULL, matches each process's own executable when empty */
	const struct tl_select *select;
	const char *program; /* --program: a glob on the short names of the executables of
			      * the process tree that are measured; NULL: all of them */

	/* --exact: every call is counted, whatever it costs. Otherwise the safety valve
	 * disarms the costliest functions while stops eat more than half of the time. */
	bool exact;

	/* Patterns as tl_pattern_new() takes them, checked already; NULL: not given */
	const char *within;   /* --within: only calls made inside this function */
	const char *start_on; /* --start-on: measuring begins when it is first entered */
	const char *stop_on;  /* --stop-on: measuring ends when it is entered */
	const char *baseline; /* --baseline: only noted in a `#!' line of the profile */
	unsigned depth;	      /* --depth: levels of frames recorded; 0: no limit */

	bool follow; /* children after fork and exec; default true (--no-follow) */
	bool raw;    /* --raw: take nothing out, note $over_* */

	enum tl_dialect dialect; /* --dialect; default TL_DIALECT_IDS */
	uint64_t max_size;	 /* --max-size: bytes of the profile; 0: no limit */

	enum tl_pin pin;  /* --pin; default TL_PIN_AUTO */
	bool quiet;	  /* -q: no status line, no warnings */
	unsigned verbose; /* -v: 1 says what is going on and what was left out, 2 for debugging */

	/* The live form: the command line prints the report when the run has ended. The
	 * engine only leaves the terminal clean for it. */
	bool live;
};

#endif
