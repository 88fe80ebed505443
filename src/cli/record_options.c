#include <config.h>

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/record_options.h"

struct row;
typedef int set_fn(struct tl_record_args *a, const struct row *row, const char *value);

/* One option. NAME as it was written stands in messages. */
struct row {
	const char *name;
	int val; /* the short form, or a number above all of them */
	int has_arg;
	set_fn *set;
	size_t at;	 /* of the member of struct tl_run_options */
	int value;	 /* for set_flag, add_select */
	const char *why; /* for refuse: what can be done instead */
};

static set_fn set_help, set_string, set_flag, set_time, set_size, set_count, set_pattern,
    set_dialect, set_pin, set_user, add_pid, add_select, add_verbose, refuse;

#define NO	 no_argument
#define ARG	 required_argument
#define AT(m)	 offsetof(struct tl_run_options, m)
#define LONG(n)	 (256 + (n))
#define NO_TRAPS "every call is counted here, see --exact"

static const struct row rows[] = {
    {"help", 'h', NO, set_help, 0, 0, NULL},
    {"output", 'o', ARG, set_string, AT(output), 0, NULL},
    {"pid", 'p', ARG, add_pid, 0, 0, NULL},
    {"duration", 'd', ARG, set_time, AT(duration_ns), 1, NULL},
    {"delay", LONG(0), ARG, set_time, AT(delay_ns), 0, NULL},
    {"function", 'f', ARG, add_select, 0, TL_SELECT_FUNCTION, NULL},
    {"exclude", 'x', ARG, add_select, 0, TL_SELECT_EXCLUDE, NULL},
    {"library", 'l', ARG, add_select, 0, TL_SELECT_LIBRARY, NULL},
    {"source", LONG(1), ARG, add_select, 0, TL_SELECT_SOURCE, NULL},
    {"exact", LONG(2), NO, set_flag, AT(exact), true, NULL},
    {"within", LONG(3), ARG, set_pattern, AT(within), 0, NULL},
    {"depth", LONG(4), ARG, set_count, AT(depth), 0, NULL},
    {"program", LONG(5), ARG, set_string, AT(program), 0, NULL},
    {"user", 'u', ARG, set_user, 0, 0, NULL},
    {"start-on", LONG(6), ARG, set_pattern, AT(start_on), 0, NULL},
    {"stop-on", LONG(7), ARG, set_pattern, AT(stop_on), 0, NULL},
    {"baseline", LONG(8), ARG, set_pattern, AT(baseline), 0, NULL},
    {"follow", LONG(9), NO, set_flag, AT(follow), true, NULL},
    {"no-follow", LONG(10), NO, set_flag, AT(follow), false, NULL},
    {"raw", LONG(11), NO, set_flag, AT(raw), true, NULL},
    {"dialect", LONG(12), ARG, set_dialect, 0, 0, NULL},
    {"max-size", LONG(13), ARG, set_size, AT(max_size), 0, NULL},
    {"pin", LONG(14), ARG, set_pin, 0, 0, NULL},
    {"quiet", 'q', NO, set_flag, AT(quiet), true, NULL},
    {"verbose", 'v', NO, add_verbose, 0, 0, NULL},
    /* Words of the design that this version cannot keep. */
    {"sample", LONG(15), NO, refuse, 0, 0, NO_TRAPS},
    {"auto", LONG(16), NO, refuse, 0, 0, "leave it out: a safety valve bounds the cost"},
    {"budget", LONG(17), ARG, refuse, 0, 0, "leave it out: a safety valve bounds the cost"},
    {"frequency", 'F', ARG, refuse, 0, 0, NO_TRAPS},
    {"wall", LONG(18), NO, refuse, 0, 0, NO_TRAPS},
    {"name-from", LONG(19), ARG, refuse, 0, 0, "calls are named by their function"},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void *member(struct tl_record_args *a, const struct row *row)
{
	return (char *)&a->run + row->at;
}

static int set_help(struct tl_record_args *a, const struct row *row, const char *value)
{
	(void)row;
	(void)value;
	a->help = true;
	return TL_OK;
}

static int set_string(struct tl_record_args *a, const struct row *row, const char *value)
{
	if (!*value)
		return tl_fail(-EINVAL, "--%s needs a value that is not empty", row->name);
	*(const char **)member(a, row) = value;
	return TL_OK;
}

static int set_flag(struct tl_record_args *a, const struct row *row, const char *value)
{
	(void)value;
	*(bool *)member(a, row) = row->value;
	return TL_OK;
}

static int add_verbose(struct tl_record_args *a, const struct row *row, const char *value)
{
	(void)row;
	(void)value;
	a->run.verbose++;
	return TL_OK;
}

static int named(const struct row *row, char *buf, size_t n)
{
	return snprintf(buf, n, "--%s", row->name);
}

static int set_time(struct tl_record_args *a, const struct row *row, const char *value)
{
	uint64_t *ns = member(a, row);
	char name[32];
	int r;

	named(row, name, sizeof name);
	r = tl_value_time(name, value, ns);
	if (r == TL_OK && row->value && !*ns)
		return tl_fail(-EINVAL, "%s %s: must be above 0; leave it out for no limit", name,
			       value);
	return r;
}

static int set_size(struct tl_record_args *a, const struct row *row, const char *value)
{
	char name[32];

	named(row, name, sizeof name);
	return tl_value_size(name, value, member(a, row));
}

static int set_count(struct tl_record_args *a, const struct row *row, const char *value)
{
	char name[32];

	named(row, name, sizeof name);
	return tl_value_count(name, value, member(a, row));
}

static int set_pattern(struct tl_record_args *a, const struct row *row, const char *value)
{
	/* It is used one by one later; a selection of its own tells now whether it is any good. */
	struct tl_select *trial = tl_select_new();
	int r = tl_select_add(trial, TL_SELECT_FUNCTION, value);

	tl_select_free(trial);
	*(const char **)member(a, row) = value;
	return r;
}

static int add_select(struct tl_record_args *a, const struct row *row, const char *value)
{
	return tl_select_add(a->select, row->value, value);
}

static int set_dialect(struct tl_record_args *a, const struct row *row, const char *value)
{
	if (!strcmp(value, "ids"))
		a->run.dialect = TL_DIALECT_IDS;
	else if (!strcmp(value, "1997"))
		a->run.dialect = TL_DIALECT_1997;
	else
		return tl_fail(-EINVAL, "--%s %s: not a dialect; there are 1997 and ids", row->name,
			       value);
	return TL_OK;
}

static int set_pin(struct tl_record_args *a, const struct row *row, const char *value)
{
	if (!strcmp(value, "auto"))
		a->run.pin = TL_PIN_AUTO;
	else if (!strcmp(value, "never"))
		a->run.pin = TL_PIN_NEVER;
	else
		return tl_fail(-EINVAL, "--%s %s: there are auto and never", row->name, value);
	return TL_OK;
}

static int set_user(struct tl_record_args *a, const struct row *row, const char *value)
{
	struct passwd *pw;

	(void)row;
	if (geteuid() != 0)
		return tl_fail(-EPERM, "-u %s: only root may launch as another user; use sudo",
			       value);
	errno = 0;
	pw = getpwnam(value);
	if (!pw)
		return tl_fail(errno ? -errno : -ENOENT,
			       "-u %s: there is no such user; `getent passwd' lists them", value);
	free(a->user_name);
	free(a->user_home);
	a->user_name = tl_strdup(pw->pw_name);
	a->user_home = tl_strdup(pw->pw_dir);
	a->run.user =
	    (struct tl_run_user){true, a->user_name, a->user_home, pw->pw_uid, pw->pw_gid};
	return TL_OK;
}

static int add_pid(struct tl_record_args *a, const struct row *row, const char *value)
{
	pid_t pid;
	int r = tl_value_pid(value, &pid);

	(void)row;
	if (r != TL_OK)
		return r;
	for (size_t i = 0; i < a->pids.n; i++)
		if (a->pids.at[i] == pid)
			return TL_OK;
	tl_vec_push(&a->pids, pid);
	return TL_OK;
}

static int refuse(struct tl_record_args *a, const struct row *row, const char *value)
{
	(void)a;
	(void)value;
	return tl_fail(-EOPNOTSUPP, "--%s is not available in this version; %s", row->name,
		       row->why);
}

/* What getopt_long wants, made from the rows: one table is enough to keep right. */
static void make_options(struct option longs[N_ROWS + 1], char shorts[2 * N_ROWS + 3])
{
	*shorts++ = '+'; /* the program's options are its own */
	*shorts++ = ':';
	for (size_t i = 0; i < N_ROWS; i++) {
		longs[i] = (struct option){rows[i].name, rows[i].has_arg, NULL, rows[i].val};
		if (rows[i].val > UCHAR_MAX)
			continue;
		*shorts++ = rows[i].val;
		if (rows[i].has_arg == ARG)
			*shorts++ = ':';
	}
	longs[N_ROWS] = (struct option){0};
	*shorts = '\0';
}

static const struct row *find_row(int val)
{
	for (size_t i = 0; i < N_ROWS; i++)
		if (rows[i].val == val)
			return &rows[i];
	return NULL;
}

/* What single options cannot know. ARGV: what is left of the command line. */
static int check(struct tl_record_args *a, bool live, char **argv)
{
	struct tl_run_options *o = &a->run;
	const char *command = live ? "trapline" : "trapline record";

	o->pids = a->pids.at;
	o->n_pids = a->pids.n;
	o->argv = *argv ? argv : NULL;
	if (!o->argv && !o->n_pids)
		return tl_fail(
		    -EINVAL,
		    "nothing to record; give a program (%s ./prog) or a process (%s -p PID)",
		    command, command);
	if (o->argv && o->n_pids)
		return tl_fail(-EINVAL,
			       "%s: either a program or -p, not both; give -p more than once for "
			       "several processes",
			       argv[0]);
	if (o->argv && !*argv[0])
		return tl_fail(-EINVAL, "the program's name is empty; give one, as in %s ./prog",
			       command);
	if (o->n_pids && o->user.set)
		return tl_fail(
		    -EINVAL, "-u is for launching a program; -p attaches to one that has its user");
	if (!strcmp(o->output, "-"))
		return tl_fail(
		    -EINVAL, "-o -: write -o /dev/stdout for the standard output, ./- for a file");
	return TL_OK;
}

static int parse_all(int argc, char **argv, bool live, struct tl_record_args *a)
{
	struct option longs[N_ROWS + 1];
	char shorts[2 * N_ROWS + 3];
	int got, r;

	make_options(longs, shorts);
	opterr = 0;
	optind = 1;
	while ((got = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (got == '?' || got == ':') {
			tl_say_bad_option("trapline record", got, argv, longs);
			return -EINVAL;
		}
		const struct row *row = find_row(got);
		r = row->set(a, row, optarg);
		if (r < 0)
			tl_say("%s", tl_error_text());
		if (r < 0 || a->help)
			return r;
	}
	r = check(a, live, argv + optind);
	if (r < 0)
		tl_say("%s", tl_error_text());
	return r;
}

int tl_record_args_parse(int argc, char **argv, bool live, struct tl_record_args *args)
{
	const char *env = getenv("TRAPLINE_OUT");

	memset(args, 0, sizeof *args);
	args->select = tl_select_new();
	args->run = (struct tl_run_options){
	    .output = env && *env ? env : "tmon.out",
	    .select = args->select,
	    .follow = true,
	    .pin = TL_PIN_AUTO,
	    .live = live,
	};
	return parse_all(argc, argv, live, args);
}

void tl_record_args_fini(struct tl_record_args *args)
{
	tl_select_free(args->select);
	tl_vec_fini(&args->pids);
	free(args->user_name);
	free(args->user_home);
}
