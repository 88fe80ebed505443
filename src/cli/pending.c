/* TEMPORARY: stands in for parts that are on their way, so that the command line links
 * and can be tested by itself. To be deleted when the last of them is in: what is
 * defined here wins over the library's, as an archive's member is not even looked
 * at for a symbol that has a definition. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/commands.h"
#include "engine/run.h"
#include "target/procfs.h"

#define WEAK __attribute__((weak))

static int pending(char **argv)
{
	tl_say("%s is not available in this version", argv[0]);
	return TL_EXIT_FAILURE;
}

#define PENDING(name)                                                                              \
	WEAK int tl_cmd_##name(int argc, char **argv)                                              \
	{                                                                                          \
		(void)argc;                                                                        \
		return pending(argv);                                                              \
	}
PENDING(report)
PENDING(dprofpp)
PENDING(summarize)
PENDING(diff)
PENDING(merge)
PENDING(export)
PENDING(list)
PENDING(calibrate)
PENDING(doctor)

WEAK int tl_report_file(const char *path, FILE *out)
{
	fprintf(out, "(the report of %s)\n", path);
	return 0;
}
