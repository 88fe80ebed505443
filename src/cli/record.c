#include <config.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/record_options.h"
#include "engine/run.h"

/* A screen of 24 x 80. */
static const char help_text[] =
    " -o, --output FILE       the profile [$TRAPLINE_OUT, else tmon.out]\n"
    " -p, --pid PID|NAME      attach; repeatable\n"
    " -d, --duration TIME     measure so long;  --delay TIME: begin so much later\n"
    " -f, --function PATTERN  only these;  -x, --exclude PATTERN: not these\n"
    " -l, --library PATTERN   functions of these modules [main: the executable]\n"
    "     --source PATTERN    of these source files;  --program GLOB: these programs\n"
    "     --within FUNC       only calls inside FUNC;  --depth N: only N levels deep\n"
    "     --start-on FUNC     begin when FUNC is called;  --stop-on FUNC: end then\n"
    "     --exact             count every call; else the costliest functions are let\n"
    "                         go while stops take more than half of the time\n"
    "     --follow, --no-follow   whether children are traced too [--follow]\n"
    "     --baseline FUNC     note that reports should subtract FUNC from every call\n"
    "     --raw               leave the cost of tracing in the times\n"
    "     --max-size SIZE     end when the profile is this big;  --dialect 1997|ids\n"
    "     --pin auto|never    whether hot threads may be moved to another CPU [auto]\n"
    " -u, --user USER         launch as USER (root only)\n"
    " -q, --quiet   -v, --verbose (twice: more)   -h, --help\n"
    "PATTERN: glob on the whole name, module::glob, re:EXPR.  SIZE: 4096, 10M.\n"
    "TIME: 5, 0.2, 500ms, 1m.  All of it: man trapline.  Not in this version:\n"
    "--sample, --auto, --budget, -F (--frequency), --wall, --name-from.\n";

static void help(bool live)
{
	if (live)
		printf("Usage: trapline [OPTIONS] [--] PROGRAM [ARG...]\n"
		       "       trapline [OPTIONS] -p PID\n"
		       "Record, then print the report on stderr.\n%s",
		       help_text);
	else
		printf("Usage: trapline record [OPTIONS] [--] PROGRAM [ARG...]\n"
		       "       trapline record [OPTIONS] -p PID    until Ctrl-C, -d or its end\n%s",
		       help_text);
}

/* Die as the target did, so that whoever waits for us sees what it would have seen. */
static int die_of(int sig)
{
	const struct rlimit none = {0, 0};
	sigset_t set;

	fflush(NULL);
	/* Its core is its own business, ours would overwrite it. A core_pattern that is a pipe
	 * does not look at the limit, but at this. */
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return 128 + sig; /* a signal whose default is not to kill */
}

static int not_launched(int error, const char *program)
{
	const char *near = strchr(program, '/') ? NULL : tl_nearest_command(program);

	if (near && error == ENOENT)
		tl_say("%s; did you mean the command `trapline %s'?", tl_error_text(), near);
	else
		tl_say("%s", tl_error_text());
	return error == ENOENT || error == ENOTDIR ? TL_EXIT_NOT_FOUND : TL_EXIT_NOT_EXECUTABLE;
}

static int report(const char *path)
{
	struct stat st;

	/* Whoever asked for a pipe or a device has the profile there: no failure. */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		tl_warn("no report: %s cannot be read back; give -o a file to get one", path);
		return 0;
	}
	return tl_report_file(path, stderr);
}

static int run(const struct tl_record_args *args)
{
	const struct tl_run_options *o = &args->run;
	struct tl_run_result result = {0};
	int status, r;

	tl_say_log(o->quiet, o->verbose);
	r = tl_run(o, &result);
	if (r < 0 && result.launch_error)
		return not_launched(result.launch_error, o->argv[0]);
	if (r < 0) {
		tl_say("%s", tl_error_text());
		return TL_EXIT_RECORD_FAILED;
	}
	status = result.attached ? 0 : result.exit_code;
	if (!result.complete) {
		tl_say("the profile is incomplete: %s", tl_error_text());
		status = status ? status : TL_EXIT_RECORD_FAILED;
	}
	if (o->live && result.path && report(result.path) != 0)
		status = status ? status : TL_EXIT_RECORD_FAILED;
	if (!result.attached && result.killed_by_signal)
		return die_of(result.killed_by_signal);
	return status;
}

static int record(int argc, char **argv, bool live)
{
	struct tl_record_args args;
	int status = TL_EXIT_RECORD_FAILED;

	if (tl_record_args_parse(argc, argv, live, &args) == TL_OK) {
		if (args.help)
			help(live);
		status = args.help ? 0 : run(&args);
	}
	tl_record_args_fini(&args);
	return status;
}

int tl_cmd_record(int argc, char **argv)
{
	return record(argc, argv, false);
}

int tl_cmd_live(int argc, char **argv)
{
	return record(argc, argv, true);
}
