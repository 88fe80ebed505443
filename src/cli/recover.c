#include <config.h>

#include "base/err.h"
#include "cli/commands.h"
#include "event/writer.h"

static const char help_text[] =
    "Usage: trapline recover [-o FILE] DIR\n"
    "Make the profile of a recording that was cut short (kill -9, a crash) from the\n"
    "spool folder that it left, OUTPUT.spool.PID, and remove the folder.\n"
    " -o, --output FILE   the profile [where the recording meant to put it]\n"
    " -h, --help\n"
    "Calls that were open are closed at their task's last mark, and flagged.\n";

int tl_cmd_recover(int argc, char **argv)
{
	static const struct option longs[] = {
	    {"output", required_argument, NULL, 'o'},
	    {"help", no_argument, NULL, 'h'},
	    {0},
	};
	const char *output = NULL;
	int got;

	opterr = 0;
	optind = 1;
	while ((got = getopt_long(argc, argv, ":o:h", longs, NULL)) != -1)
		switch (got) {
		case 'o':
			output = optarg;
			break;
		case 'h':
			fputs(help_text, stdout);
			return 0;
		default:
			tl_say_bad_option("trapline recover", got, argv, longs);
			return TL_EXIT_USAGE;
		}
	if (optind != argc - 1) {
		tl_say("recover takes one folder, the OUTPUT.spool.PID that a recording left; "
		       "`trapline recover --help'");
		return TL_EXIT_USAGE;
	}
	if (tl_spool_recover(argv[optind], output) != TL_OK) {
		tl_say("%s", tl_error_text());
		return TL_EXIT_FAILURE;
	}
	return 0;
}
