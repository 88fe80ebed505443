#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/commands.h"
#include "report/dprofpp.h"

static const char help[] =
    "usage: trapline dprofpp [OPTIONS] [FILE]\n"
    "\n"
    "Print a profile (default tmon.out, - for the standard input) as Devel::DProf's\n"
    "dprofpp does. Options may be bundled; DPROFPP_OPTS holds some more.\n"
    "\n"
    "clock    -r wall   -u user   -s system   (default: user + system)\n"
    "times    -I with what was called   -g NAME only inside calls of NAME\n"
    "order    -l calls   -a name   -v time per call   -U first call   -d reversed\n"
    "rows     -O N (default 15)   -f RE without names that match\n"
    "         -G RE join those that match   -P join the others too\n"
    "trees    -T calls   -t calls, repeats joined   -S joined per path, timed\n"
    "names    -R keep anonymous subs apart   -A count for AUTOLOAD, with -S\n"
    "other    -q no heading   -F end what never ended   -V version   -h this text\n";

/* Words of DPROFPP_OPTS: split at blanks, no quotes. To be freed with its text. */
static char **split(char *text, int *argc)
{
	char **words = tl_calloc(strlen(text) / 2 + 2, sizeof *words);
	char *rest = NULL;

	*argc = 0;
	for (char *w = strtok_r(text, " \t\n\r\f\v", &rest); w;
	     w = strtok_r(NULL, " \t\n\r\f\v", &rest))
		words[(*argc)++] = w;
	return words;
}

static unsigned name_width(void)
{
	struct winsize w;

	if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 80)
		return w.ws_col - 45;
	return 34;
}

int tl_cmd_dprofpp(int argc, char **argv)
{
	struct tl_dprofpp_options o = {.name_width = name_width()};
	const char *preset = getenv("DPROFPP_OPTS");
	char *text = preset ? tl_strdup(preset) : NULL;
	char **words = NULL;
	int n, status;

	if (text) {
		words = split(text, &n);
		tl_dprofpp_parse(&o, n, words, stderr);
	}
	if (!tl_dprofpp_parse(&o, argc - 1, argv + 1, stderr)) {
		fputs("Try 'trapline dprofpp -h' for help.\n", stderr);
		status = TL_DPROFPP_DIED;
	} else if (o.on['h'] || o.on['H']) {
		fputs(help, stdout);
		status = 0;
	} else if (o.on['p'] || o.on['Q']) {
		tl_say("dprofpp runs nothing: record with `trapline PROGRAM', then print");
		status = TL_DPROFPP_DIED;
	} else {
		status = tl_dprofpp_run(&o, stdout, stderr);
	}
	free(words);
	free(text);
	if (fflush(stdout) || ferror(stdout)) {
		tl_say("cannot write the report");
		status = TL_DPROFPP_DIED;
	}
	return status;
}
