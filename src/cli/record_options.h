/* cli/record_options.h - the command line of `record' and of the live form. */
#ifndef TL_CLI_RECORD_OPTIONS_H
#define TL_CLI_RECORD_OPTIONS_H

#include "base/vec.h"
#include "engine/options.h"

struct tl_record_args {
	struct tl_run_options run; /* what it points to is below, or in argv */
	TL_VEC(pid_t) pids;
	struct tl_select *select;
	char *user_name, *user_home;
	bool help; /* --help was given: nothing else was looked at */
};

/* Parses and checks. ARGS is valid, and to be finished, whatever comes back. A negative
 * errno: not understood; the reason has been said already. */
int tl_record_args_parse(int argc, char **argv, bool live, struct tl_record_args *args);
void tl_record_args_fini(struct tl_record_args *args);

/* cli/values.c: values of options. A negative errno has a text that names OPTION. */

/* `5', `0.2', `500ms', `1m': ns. Units: ns us ms s m h; seconds without. */
int tl_value_time(const char *option, const char *text, uint64_t *ns);
/* `4096', `10M': bytes. Units: K M G T, powers of 1024, with or without B or iB. */
int tl_value_size(const char *option, const char *text, uint64_t *bytes);
int tl_value_count(const char *option, const char *text, unsigned *n);

/* cli/pids.c: a PID, or the name of one process: its comm or the base name of its executable.
 * Several matches are listed in the text and refused. */
int tl_value_pid(const char *text, pid_t *pid);

#endif
