#include "engine/shadow.h"

#include <stdlib.h>

#include "trapline/marks.h"

void tl_shadow_init(struct tl_shadow *s, const struct tl_shadow_ops *ops, void *ctx)
{
	*s = (struct tl_shadow){.ops = ops, .ctx = ctx};
}

static struct tl_frame *frame_of(const struct tl_open *o)
{
	return &o->stack->frames.at[o->frame];
}

static void open_frame(struct tl_shadow *s, struct tl_stack *st, size_t i, unsigned flags)
{
	struct tl_frame *f = &st->frames.at[i];

	f->open_in_block = true;
	tl_vec_push(&s->block, (struct tl_open){st, i});
	s->ops->opened(s->ctx, f, flags);
}

/* Frames of other stacks that were opened later are in the way: set aside. */
static void close_frame(struct tl_shadow *s, struct tl_frame *f, unsigned flags)
{
	while (s->block.n) {
		struct tl_open *o = &s->block.at[--s->block.n];
		struct tl_frame *top = frame_of(o);

		top->open_in_block = false;
		if (top == f)
			break;
		o->stack->suspended++;
		s->ops->closed(s->ctx, top, TL_MARK_FORCED);
	}
	s->ops->closed(s->ctx, f, flags);
}

static void pop(struct tl_shadow *s, struct tl_stack *st, unsigned flags)
{
	struct tl_frame *f = &st->frames.at[st->frames.n - 1];

	if (f->open_in_block)
		close_frame(s, f, flags);
	else if (f->shown)
		st->suspended--;
	s->ops->left(s->ctx, f);
	st->frames.n--;
}

static struct tl_frame *top_of(const struct tl_stack *st)
{
	return st && st->frames.n ? &st->frames.at[st->frames.n - 1] : NULL;
}

static void close_below(struct tl_shadow *s, uint64_t sp)
{
	while (top_of(s->current) && top_of(s->current)->sp < sp)
		pop(s, s->current, TL_MARK_UNWOUND);
}

static void reopen(struct tl_shadow *s, struct tl_stack *st)
{
	for (size_t i = 0; i < st->frames.n && st->suspended; i++) {
		if (!st->frames.at[i].shown || st->frames.at[i].open_in_block)
			continue;
		st->suspended--;
		open_frame(s, st, i, TL_MARK_SYNTHETIC);
	}
}

bool tl_shadow_on(struct tl_shadow *s, uint64_t sp)
{
	struct tl_stack *st = s->current;

	if (!st || sp - st->lo >= st->hi - st->lo) {
		st = NULL;
		for (size_t i = 0; i < s->stacks.n && !st; i++)
			if (sp - s->stacks.at[i]->lo < s->stacks.at[i]->hi - s->stacks.at[i]->lo)
				st = s->stacks.at[i];
		if (!st)
			return false;
		s->current = st;
	}
	if (st->suspended) {
		/* Dead ones are not opened again. */
		close_below(s, sp);
		reopen(s, st);
	}
	return true;
}

void tl_shadow_add_stack(struct tl_shadow *s, uint64_t lo, uint64_t hi)
{
	struct tl_stack *st = tl_calloc(1, sizeof *st);

	st->lo = lo;
	st->hi = hi;
	tl_vec_push(&s->stacks, st);
	s->current = st;
}

static void push(struct tl_shadow *s, struct tl_frame f, unsigned flags)
{
	struct tl_stack *st = s->current;

	tl_vec_push(&st->frames, f);
	if (f.shown)
		open_frame(s, st, st->frames.n - 1, flags);
}

enum tl_entered tl_shadow_enter(struct tl_shadow *s, uint64_t sp, void *probe, bool loops, bool shown)
{
	struct tl_frame *top;

	close_below(s, sp);
	top = top_of(s->current);
	if (top && top->sp == sp) {
		if (loops && top->probe == probe)
			return TL_ENTERED_LOOP;
		/* Left by a jump that was not watched (through a pointer): a tail call. */
		pop(s, s->current, 0);
	}
	push(s, (struct tl_frame){.sp = sp, .probe = probe, .shown = shown}, 0);
	return TL_ENTERED;
}

void tl_shadow_found(struct tl_shadow *s, uint64_t sp, void *probe, bool shown)
{
	push(s, (struct tl_frame){.sp = sp, .probe = probe, .shown = shown}, TL_MARK_SYNTHETIC);
}

void tl_shadow_exit(struct tl_shadow *s, uint64_t sp)
{
	close_below(s, sp);
	if (top_of(s->current) && top_of(s->current)->sp == sp)
		pop(s, s->current, 0);
}

void tl_shadow_return(struct tl_shadow *s, uint64_t sp)
{
	struct tl_frame *top;

	while ((top = top_of(s->current)) && top->sp < sp) {
		size_t n = s->current->frames.n;
		bool last = n == 1 || s->current->frames.at[n - 2].sp >= sp;

		pop(s, s->current, last ? 0 : TL_MARK_UNWOUND);
	}
}

void tl_shadow_close_all(struct tl_shadow *s, unsigned flags)
{
	while (s->block.n) {
		struct tl_open o = s->block.at[--s->block.n];

		frame_of(&o)->open_in_block = false;
		frame_of(&o)->shown = false;
		s->ops->closed(s->ctx, frame_of(&o), flags);
	}
	for (size_t i = 0; i < s->stacks.n; i++) {
		struct tl_stack *st = s->stacks.at[i];

		while (st->frames.n) {
			s->ops->left(s->ctx, top_of(st));
			st->frames.n--;
		}
		tl_vec_fini(&st->frames);
		free(st);
	}
	s->stacks.n = 0;
	s->current = NULL;
}

void tl_shadow_inherit(struct tl_shadow *to, const struct tl_shadow *from,
		       void *(*probe)(void *ctx, void *), void *ctx)
{
	const struct tl_stack *st = from->current;

	if (!st)
		return;
	tl_shadow_add_stack(to, st->lo, st->hi);
	for (size_t i = 0; i < st->frames.n; i++) {
		void *p = probe(ctx, st->frames.at[i].probe);

		if (p)
			tl_shadow_found(to, st->frames.at[i].sp, p, st->frames.at[i].shown);
	}
}

const struct tl_frame *tl_shadow_top(const struct tl_shadow *s)
{
	return top_of(s->current);
}

void tl_shadow_fini(struct tl_shadow *s)
{
	tl_shadow_close_all(s, TL_MARK_FORCED);
	tl_vec_fini(&s->stacks);
	tl_vec_fini(&s->block);
}
