/* Chooses what to do by the first word: a command is one, anything else records. */
#include <config.h>

#include <string.h>

#include "cli/commands.h"

static tl_command help_command;

static const struct {
	const char *name;
	tl_command *run;
	const char *help;
} commands[] = {
    {"record", tl_cmd_record, "record a program or a running process to tmon.out"},
    {"report", tl_cmd_report, "what a run was, and its most expensive functions"},
    {"dprofpp", tl_cmd_dprofpp, "print a profile as Devel::DProf's dprofpp does"},
    {"recover", tl_cmd_recover, "the profile of a recording that was cut short"},
    {"calibrate", tl_cmd_calibrate, "what stops cost on this machine"},
    {"list", tl_cmd_list, "(later) what would be probed, and for the rest why not"},
    {"doctor", tl_cmd_doctor, "(later) what this system allows, how to get the rest"},
    {"summarize", tl_cmd_summarize, "(later) name, calls, ms, ms/call, %: PracTcl's table"},
    {"diff", tl_cmd_diff, "(later) what changed between two profiles"},
    {"merge", tl_cmd_merge, "(later) one profile from several"},
    {"export", tl_cmd_export, "(later) a profile for other viewers"},
    {"help", help_command, "help on a command"},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static const char start_text[] =
    "trapline ./program args     profile a program, print the report when it ends\n"
    "trapline -p PID -d 5        profile a running one for 5 seconds\n"
    "trapline report             the report again, from tmon.out\n"
    "trapline --help             all commands\n"
    "man trapline                everything\n";

static int print_help(void)
{
	fputs("Usage: trapline [OPTIONS] [--] PROGRAM [ARG...]   record, then report\n"
	      "       trapline [OPTIONS] -p PID                 attach, record, then report\n"
	      "       trapline COMMAND ...\n",
	      stdout);
	for (size_t i = 0; i < N_COMMANDS; i++)
		printf("  %-10s %s\n", commands[i].name, commands[i].help);
	fputs("`trapline help COMMAND' tells more; `trapline help record' lists the OPTIONS.\n"
	      "A first word that is a command is one; `--' or a slash makes it a program.\n"
	      "  -h, --help    this\n"
	      "  -V, --version\n",
	      stdout);
	return 0;
}

static tl_command *find_command(const char *word)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (!strcmp(commands[i].name, word))
			return commands[i].run;
	return NULL;
}

bool tl_is_command(const char *word)
{
	return find_command(word) != NULL;
}

const char *tl_nearest_command(const char *word)
{
	const char *names[N_COMMANDS + 1];

	for (size_t i = 0; i < N_COMMANDS; i++)
		names[i] = commands[i].name;
	names[N_COMMANDS] = NULL;
	return tl_nearest(word, names);
}

static int help_command(int argc, char **argv)
{
	char *ask[] = {argc > 1 ? argv[1] : NULL, (char[]){"--help"}, NULL};
	const char *near;

	if (argc < 2 || !strcmp(argv[1], "help") || argv[1][0] == '-')
		return print_help();
	if (tl_is_command(argv[1]))
		return find_command(argv[1])(2, ask);
	near = tl_nearest_command(argv[1]);
	if (near)
		tl_say("%s is no command; did you mean %s?", argv[1], near);
	else
		tl_say("%s is no command; `trapline --help' lists them", argv[1]);
	return TL_EXIT_USAGE;
}

static int dispatch(int argc, char **argv)
{
	tl_command *command;

	if (argc < 2) {
		fputs(start_text, stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return print_help();
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts(PACKAGE_STRING);
		return 0;
	}
	command = find_command(argv[1]);
	return command ? command(argc - 1, argv + 1) : tl_cmd_live(argc, argv);
}

int main(int argc, char **argv)
{
	int status;

	tl_say_log(false, 0);
	status = dispatch(argc, argv);
	/* A report that went to a full disk must not look like a good one. */
	if ((fflush(stdout) != 0 || ferror(stdout)) && status == 0) {
		tl_say("standard output: could not be written in full");
		status = TL_EXIT_FAILURE;
	}
	return status;
}
