/* model/profile.h - marks to numbers per function, and to a tree of calls.
 *
 * The accounting is that of dprofpp: a function's total is the time of its outermost
 * activations, so recursion is never counted twice; its self time is the sum over all
 * of them less what they called. The function an exit mark names is the one credited.
 *
 * Every number is kept in all clocks, in the reader's units, and as a number of marks
 * passed, from which the overhead of the instrumentation follows (tl_profile_time):
 * integers until printed. */
#ifndef TL_MODEL_PROFILE_H
#define TL_MODEL_PROFILE_H

#include "base/map.h"
#include "base/vec.h"
#include "trapline/reader.h"

enum { TL_CPU = TL_CLOCKS }; /* user + system */

/* Time in each clock, and how many marks it took. */
struct tl_span {
	int64_t in[TL_CLOCKS];
	int64_t marks;
	double ticks; /* in the clock asked for, overhead taken out mark by mark: rounded as
		       * dprofpp rounds, which decides the order of what is as good as equal */
};

struct tl_row {
	uint32_t func;
	const char *name;   /* borrowed from the reader */
	uint64_t calls;	    /* enter marks */
	uint64_t synthetic; /* of them, frames that were open before */
	size_t order;	    /* of its first enter */
	int64_t open;	    /* enters less exits */
	struct tl_span self, total;
};

/* Calls merged per path. */
struct tl_node {
	uint32_t func;
	uint64_t calls;
	struct tl_span total; /* of all activations: recursion lies deeper */
	TL_VEC(struct tl_node *) kids;
	struct tl_map *by_func; /* only where there are many */
};

struct tl_open_call {
	uint32_t func;
	struct tl_span since, kids;
	struct tl_node *node;
};

struct tl_profile_options {
	bool tree;	    /* build the tree of calls */
	bool tree_by_enter; /* file a frame under the name of its enter mark: dprofpp -A */
	const char *inside; /* only calls made inside this function: dprofpp -g; NULL: all */
	/* An exit mark names another function than the top frame: TL_OK credits the one
	 * *CREDIT says (the exit's by default), a negative errno ends it. NULL: do not ask. */
	int (*mismatch)(void *arg, const char *top, const char *name, bool *credit_top);
	void *arg;
	int clock; /* of tl_span.ticks */
};

struct tl_profile {
	struct tl_profile_options o;
	struct tl_reader *r;	    /* borrowed */
	TL_VEC(struct tl_row) rows; /* by func; those without calls were never entered */
	size_t entered;
	TL_VEC(struct tl_open_call) stack;
	struct tl_span now;	/* the last mark that counted */
	struct tl_span written; /* time between the marks of the writer itself, all marks */
	double over_mark, over; /* overhead of a mark, and of all so far, in ticks */
	int64_t write_from[TL_CLOCKS];
	int64_t level;	    /* of inside */
	int64_t write_func; /* `Devel::DProf::write' in this file, -1: not seen */
	uint64_t tasks, forced, unwound;
	struct tl_node *root, *spare;
};

void tl_profile_init(struct tl_profile *p, struct tl_reader *r, const struct tl_profile_options *o);
/* DID tells which of a frame's ends it was, TL_DID_*: both for a goto. -EBADMSG when there
 * was no frame to close. */
enum { TL_DID_EXIT = 1, TL_DID_ENTER = 2 };
int tl_profile_feed(struct tl_profile *p, const struct tl_event *e, unsigned *did);
/* Closes what is still open, at the time of the last mark. */
int tl_profile_close(struct tl_profile *p);
/* Feeds all there is, then closes. */
int tl_profile_read(struct tl_profile *p);
void tl_profile_fini(struct tl_profile *p);

/* The functions that were entered, in the order of that. The array is the caller's. */
size_t tl_profile_list(struct tl_profile *p, struct tl_row ***list);
struct tl_row *tl_profile_find(struct tl_profile *p, const char *name);

/* A span in ticks, less the overhead $over_* states. CLOCK: TL_USER ... TL_WALL, TL_CPU. */
double tl_profile_ticks(const struct tl_header *h, const struct tl_span *s, int clock);
/* As dprofpp computes it, in the clock of the options. */
double tl_profile_ticks_rounded(const struct tl_profile *p, const struct tl_span *s);
/* Without taking anything out, in units. */
int64_t tl_span_units(const struct tl_span *s, int clock);

#endif
