/* cli/commands.h - the commands, one file each, and what they share.
 *
 * A command gets its own name as argv[0] and returns the exit status. Messages go to
 * stderr as `trapline: ...', the report of a reading command to stdout. */
#ifndef TL_CLI_COMMANDS_H
#define TL_CLI_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <getopt.h>

/* Exit statuses. Recording commands end as their target did, so theirs are out of the way. */
enum {
	TL_EXIT_FAILURE = 1, /* reading commands: it did not work */
	TL_EXIT_USAGE = 2,   /* reading commands: not understood */
	TL_EXIT_GATE = 3,    /* reading commands: a gate closed */

	TL_EXIT_RECORD_FAILED = 125, /* recording: any failure of ours, usage errors too */
	TL_EXIT_NOT_EXECUTABLE = 126,
	TL_EXIT_NOT_FOUND = 127,
};

typedef int tl_command(int argc, char **argv);

tl_command tl_cmd_record, tl_cmd_report, tl_cmd_dprofpp, tl_cmd_summarize, tl_cmd_diff,
    tl_cmd_merge, tl_cmd_export, tl_cmd_recover, tl_cmd_list, tl_cmd_calibrate, tl_cmd_doctor;

/* `trapline PROGRAM', `trapline -p PID': record, then the report on stderr. argv[0] is
 * "trapline". */
int tl_cmd_live(int argc, char **argv);

/* The default report of the profile PATH, printed to OUT: what `trapline report PATH'
 * prints. Returns the exit status `report' would have. */
int tl_report_file(const char *path, FILE *out);

/* Whether WORD names a command. */
bool tl_is_command(const char *word);
/* The command a mistyped WORD may have meant, NULL if none is near. */
const char *tl_nearest_command(const char *word);

/* cli/message.c */

/* Prints `trapline: TEXT' to stderr. */
void tl_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Sends log messages to stderr; -q and -v say which. */
void tl_say_log(bool quiet, unsigned verbose);

/* The candidate nearest to WORD: few edits away for its length, or it begins with WORD.
 * NULL when there is none. CANDIDATES ends with NULL. */
const char *tl_nearest(const char *word, const char *const *candidates);

/* After getopt_long returned '?' or ':' (opterr is 0, the optstring begins with ":" or
 * "+:"): says what was wrong, with the nearest known option, and that `COMMAND --help'
 * lists them. Reads optind and optopt. */
void tl_say_bad_option(const char *command, int got, char *const *argv, const struct option *longs);

#endif
