#include <sched.h>
#include <string.h>

#include "base/err.h"
#include "cli/commands.h"
#include "engine/calibrate.h"

static const char help_text[] =
	"Usage: trapline calibrate\n"
	"Measures on this machine, now, what a stop costs a program beside the time it is\n"
	"held: the kernel's way into and out of it, in ns, by how long the program ran\n"
	"since its last stop. Every recording does the same before it starts; nothing is\n"
	"stored.\n";

static const char *const parts[TL_COST_PARTS] = {"into entry", "out of entry", "into exit",
						 "out of exit"};

static void print(const struct tl_costs *c, bool cpu)
{
	printf("%-4s  %-14s", cpu ? "CPU" : "wall", "ran, up to");
	for (int bin = 0; bin < TL_COST_BINS - 1; bin++)
		printf(" %7gus", tl_cost_bin_edges[bin] / 1e3);
	printf("    longer\n");
	for (int part = 0; part < TL_COST_PARTS; part++) {
		printf("      %-14s", parts[part]);
		for (int bin = 0; bin < TL_COST_BINS; bin++) {
			const struct tl_cost_cell *cell = cpu ? &c->cpu[part][bin] :
								&c->wall[part][bin];

			if (cell->n)
				printf(" %9.0f", cell->mean_ns);
			else
				printf(" %9s", "-");
		}
		printf("\n");
	}
}

int tl_cmd_calibrate(int argc, char **argv)
{
	struct tl_costs costs;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		fputs(help_text, stdout);
		return 0;
	}
	if (argc > 1) {
		tl_say("calibrate takes no argument: %s", argv[1]);
		return TL_EXIT_USAGE;
	}
	if (tl_calibrate(sched_getcpu(), false, &costs) < 0) {
		tl_say("%s", tl_error_text());
		return TL_EXIT_FAILURE;
	}
	print(&costs, false);
	print(&costs, true);
	return 0;
}
