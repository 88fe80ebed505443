#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cli/commands.h"
#include "cli/record_options.h"
#include "report/report.h"

enum { ROWS = 15 };

static const char help[] =
    "usage: trapline report [OPTIONS] [FILE]\n"
    "\n"
    "Tell what a recorded run was and which functions its time went into.\n"
    "FILE: default $TRAPLINE_OUT, else tmon.out; - is the standard input.\n"
    "\n"
    "  -n, --limit N    print N functions (default 15; 0: all)\n"
    "      --sort KEY   cpu (default), cpu-total, wall, wall-total, calls,\n"
    "                   per-call or name\n"
    "  -h, --help       print this text\n"
    "\n"
    "Calls: N is exact, ≥ N a lower bound, ~N an estimate. Self time: ≤ T is an\n"
    "upper bound, since something it called was no longer counted. Total includes\n"
    "callees; of a recursion, the outermost call only.\n";

static const struct option longs[] = {
    {"limit", required_argument, NULL, 'n'},
    {"sort", required_argument, NULL, 's'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int print(const char *path, const struct tl_report_options *o, FILE *out)
{
	int err = tl_report_print(path, o, out);

	if (err) {
		tl_say("%s", tl_error_text());
		return TL_EXIT_FAILURE;
	}
	if (fflush(out) || ferror(out)) {
		tl_say("cannot write the report: %s", strerror(errno));
		return TL_EXIT_FAILURE;
	}
	return 0;
}

int tl_report_file(const char *path, FILE *out)
{
	struct tl_report_options o = {.limit = ROWS};

	return print(path, &o, out);
}

static int parse_sort(const char *key, enum tl_report_sort *sort)
{
	const char *near;

	for (unsigned i = 0; i < TL_SORTS; i++)
		if (!strcmp(key, tl_report_sort_names[i])) {
			*sort = i;
			return TL_OK;
		}
	near = tl_nearest(key, tl_report_sort_names);
	return tl_fail(-EINVAL, "--sort %s: not a key%s%s; `trapline report --help' lists them",
		       key, near ? "; did you mean " : "", near ? near : "");
}

int tl_cmd_report(int argc, char **argv)
{
	struct tl_report_options o = {.limit = ROWS};
	const char *path = getenv("TRAPLINE_OUT");
	unsigned limit = 0;
	int c, err = 0;

	opterr = 0;
	optind = 1;
	while (!err && (c = getopt_long(argc, argv, ":n:h", longs, NULL)) != -1) {
		switch (c) {
		case 'n':
			if (strcmp(optarg, "0"))
				err = tl_value_count("--limit", optarg, &limit);
			else
				limit = 0;
			o.limit = limit;
			break;
		case 's':
			err = parse_sort(optarg, &o.sort);
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			tl_say_bad_option("report", c, argv, longs);
			return TL_EXIT_USAGE;
		}
	}
	if (!err && argc - optind > 1)
		err =
		    tl_fail(-EINVAL, "report takes one file: %s is one too many", argv[optind + 1]);
	if (err) {
		tl_say("%s", tl_error_text());
		return TL_EXIT_USAGE;
	}
	if (optind < argc)
		path = argv[optind];
	return print(path && *path ? path : "tmon.out", &o, stdout);
}
