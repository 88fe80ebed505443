/* engine/run.h - one recording, from launch or attach to the finished profile.
 *
 * Blocks until the run has ended: the last followed task is gone, the duration is
 * over, or a signal ended it. While it runs it owns SIGINT, SIGTERM, SIGHUP, SIGUSR1
 * and SIGUSR2 of the process, and puts back what it found before it returns.
 * Neither prints nor exits: messages go to base/log.h. */
#ifndef TL_ENGINE_RUN_H
#define TL_ENGINE_RUN_H

#include "engine/options.h"

struct tl_run_result {
	/* Whether the target was running already (-p): trapline then exits with 0,
	 * however the target ends. */
	bool attached;

	/* The program could not be started: the errno of the failed lookup or exec
	 * (ENOENT, EACCES, ENOEXEC, ...), positive. 0: it was started, or it never came to
	 * that. The output is then untouched and no other member but `attached' says
	 * anything. */
	int launch_error;

	/* How the launched leader ended; both 0 after attaching, and for a leader that
	 * exited with 0. At most one is non-zero. */
	int exit_code;	      /* 0..255 */
	int killed_by_signal; /* the signal's number */

	/* The profile holds everything that was asked for. False when marks were lost, a task
	 * could not be followed, the output could not be written in full: why is in
	 * tl_error_text(). An end at --max-size is complete. */
	bool complete;

	/* Where the profile is: options->output. NULL when there is none. Borrowed from
	 * the options. */
	const char *path;
};

/* Runs it. RESULT is valid whatever comes back. TL_OK: the run took place, and RESULT says
 * how it went (`complete' may be false). A negative errno, with its text in
 * tl_error_text(): there was no run (program not found: also launch_error; no permission
 * to attach; nothing matched; output not writable), or it was cut short by a failure of
 * ours; a launched target that had been started is then dead or has ended by itself,
 * an attached one runs on. Exit statuses are decided by the caller. */
int tl_run(const struct tl_run_options *o, struct tl_run_result *result);

#endif
