/* report/dprofpp.h - what Devel::DProf's dprofpp prints, byte for byte.
 *
 * The differences are few and meant: the header is not run as code, numbers that do not
 * fit their column widen it, negative times are 0, -f and -G look at every function,
 * a group without calls has a row of zeros, lines may end in CR LF. */
#ifndef TL_REPORT_DPROFPP_H
#define TL_REPORT_DPROFPP_H

#include <stdbool.h>
#include <stdio.h>

#include "base/vec.h"
#include "model/profile.h"

/* What the real one exits with is left to chance, but never 0. */
enum { TL_DPROFPP_DIED = 255 };

struct tl_dprofpp_options {
	bool on[128];	      /* by letter */
	const char *arg[128]; /* of -O -g -G -f -p */
	const char *profile;
	unsigned name_width; /* of the last column; 34 unless on a wide terminal */
};

/* Parses one letter options until the first word that is none; that word is the profile.
 * Complaints go to ERR, true when there were none. DPROFPP_OPTS and then the command
 * line are parsed into the same struct. What it points to is borrowed. */
bool tl_dprofpp_parse(struct tl_dprofpp_options *o, int argc, char *const *argv, FILE *err);
/* The exit status. */
int tl_dprofpp_run(const struct tl_dprofpp_options *o, FILE *out, FILE *err);

/* The rest is between the files of this report. */

struct tl_dp_row {
	const char *name;
	double calls, self, total; /* times in ticks, overhead taken out */
	size_t order;
};

struct tl_dprofpp {
	const struct tl_dprofpp_options *o;
	FILE *out, *err;
	struct tl_reader *r;
	const struct tl_header *h;
	struct tl_profile p;
	int clock;
	TL_VEC(struct tl_dp_row) rows;
	double run;	 /* seconds: what percentages are of */
	double overhead; /* ticks, of the whole run */
	void *group;	 /* compiled -G */
};

/* dprofpp_table.c */
void tl_dprofpp_table(struct tl_dprofpp *d);

/* dprofpp_tree.c */
struct tl_dp_tree {
	const char *last; /* -t: the line held back */
	size_t depth, times;
};
void tl_dprofpp_enter(struct tl_dprofpp *d, struct tl_dp_tree *t, const char *name, size_t depth);
void tl_dprofpp_flush(struct tl_dprofpp *d, struct tl_dp_tree *t);
void tl_dprofpp_stats(struct tl_dprofpp *d);

/* dprofpp_group.c: a negative errno has a text. */
int tl_dprofpp_group_open(struct tl_dprofpp *d);
int tl_dprofpp_filter(struct tl_dprofpp *d);
int tl_dprofpp_group(struct tl_dprofpp *d);
int tl_dprofpp_mismatch(void *arg, const char *top, const char *name, bool *credit_top);
void tl_dprofpp_group_close(struct tl_dprofpp *d);

#endif
