#include "arch/arch.h"

struct tl_place tl_step_place(const struct tl_step *s, unsigned offset)
{
	struct tl_place p = s->places[0];

	for (unsigned i = 1; i < s->n_places && s->places[i].offset <= offset; i++)
		p = s->places[i];
	return p;
}

const struct tl_arch *tl_arch_native(void)
{
#ifdef __x86_64__
	return &tl_arch_x86_64;
#else
#error "no row of the table for this CPU; doc/PORTING.md says what it needs"
#endif
}
