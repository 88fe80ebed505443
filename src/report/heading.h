/* report/heading.h - what the `#!' lines of a profile say about the run. */
#ifndef TL_REPORT_HEADING_H
#define TL_REPORT_HEADING_H

#include <stdio.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "model/profile.h"

struct tl_facts {
	struct tl_strbuf command;
	char *run, *truncated; /* those lines */
	TL_VEC(char *) refused;
};

/* Takes in what EVENT says, if it is a note. */
void tl_facts_note(struct tl_facts *f, const struct tl_event *e);
void tl_facts_print(const struct tl_facts *f, const struct tl_profile *p, FILE *out);
void tl_facts_fini(struct tl_facts *f);

#endif
