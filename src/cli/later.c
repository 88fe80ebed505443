/* Commands whose place is kept: they say so, and fail. */
#include "cli/commands.h"

static int later(char **argv)
{
	tl_say("%s is not available in this version", argv[0]);
	return TL_EXIT_FAILURE;
}

#define LATER(name)                                                                                \
	int tl_cmd_##name(int argc, char **argv)                                                   \
	{                                                                                          \
		(void)argc;                                                                        \
		return later(argv);                                                                \
	}
LATER(summarize)
LATER(diff)
LATER(merge)
LATER(export)
LATER(list)
LATER(doctor)
