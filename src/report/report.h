/* report/report.h - what a run was, and where its time went. */
#ifndef TL_REPORT_REPORT_H
#define TL_REPORT_REPORT_H

#include <stddef.h>
#include <stdio.h>

enum tl_report_sort {
	TL_SORT_CPU, /* self, CPU */
	TL_SORT_CPU_TOTAL,
	TL_SORT_WALL,
	TL_SORT_WALL_TOTAL,
	TL_SORT_CALLS,
	TL_SORT_PER_CALL, /* total CPU time of a call */
	TL_SORT_NAME,
	TL_SORTS,
};
/* "cpu", "cpu-total", ... */
extern const char *const tl_report_sort_names[TL_SORTS + 1];

struct tl_report_options {
	size_t limit; /* rows; 0: all */
	enum tl_report_sort sort;
};

/* A negative errno has a text; nothing was printed then. */
int tl_report_print(const char *path, const struct tl_report_options *o, FILE *out);

#endif
