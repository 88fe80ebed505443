#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#include "engine/shadow.h"
#include "trapline/marks.h"

/* Marks as text: `+a' enters a, `-a' leaves it; then s, u, f for the flags. */
static char marks[512];
static int calls_left;

static void note(char what, const struct tl_frame *f, unsigned flags)
{
	size_t n = strlen(marks);

	snprintf(marks + n, sizeof marks - n, "%c%s%s%s%s ", what, (const char *)f->probe,
		 flags & TL_MARK_SYNTHETIC ? "s" : "", flags & TL_MARK_UNWOUND ? "u" : "",
		 flags & TL_MARK_FORCED ? "f" : "");
}

static void opened(void *ctx, const struct tl_frame *f, unsigned flags)
{
	(void)ctx;
	note('+', f, flags);
}

static void closed(void *ctx, const struct tl_frame *f, unsigned flags)
{
	(void)ctx;
	note('-', f, flags);
}

static void left(void *ctx, const struct tl_frame *f)
{
	(void)ctx, (void)f;
	calls_left++;
}

static const struct tl_shadow_ops ops = {opened, closed, left};
static struct tl_shadow s;

static void set_up(void)
{
	marks[0] = 0;
	calls_left = 0;
	tl_shadow_init(&s, &ops, NULL);
	tl_shadow_add_stack(&s, 0x1000, 0x9000);
}

static void tear_down(void)
{
	tl_shadow_fini(&s);
}

static void enter(uint64_t sp, const char *name)
{
	cr_assert(tl_shadow_on(&s, sp));
	tl_shadow_enter(&s, sp, (void *)name, false, true);
}

static void leave(uint64_t sp)
{
	cr_assert(tl_shadow_on(&s, sp));
	tl_shadow_exit(&s, sp);
}

TestSuite(shadow, .init = set_up, .fini = tear_down);

Test(shadow, calls_nest)
{
	enter(0x8000, "a");
	enter(0x7000, "b");
	leave(0x7000);
	leave(0x8000);
	cr_assert_str_eq(marks, "+a +b -b -a ");
	cr_assert_eq(calls_left, 2);
}

Test(shadow, recursion_is_told_apart_by_the_stack_pointer)
{
	enter(0x8000, "a");
	enter(0x7000, "a");
	leave(0x7000);
	cr_assert_str_eq(marks, "+a +a -a ");
}

Test(shadow, longjmp_closes_every_frame_below_the_target_sp)
{
	enter(0x8000, "a");
	enter(0x7000, "b");
	enter(0x6000, "c");
	leave(0x8000);
	cr_assert_str_eq(marks, "+a +b +c -cu -bu -a ");
}

Test(shadow, an_exit_of_nobody_closes_only_what_lies_below)
{
	enter(0x8000, "a");
	enter(0x6000, "b");
	leave(0x7000);
	cr_assert_str_eq(marks, "+a +b -bu ");
}

Test(shadow, unwatched_tail_jump_ends_the_caller)
{
	enter(0x8000, "a");
	enter(0x8000, "b");
	leave(0x8000);
	cr_assert_str_eq(marks, "+a -a +b -b ");
}

Test(shadow, a_loop_to_its_own_entry_is_one_call)
{
	enter(0x8000, "a");
	cr_assert_eq(tl_shadow_enter(&s, 0x8000, s.current->frames.at[0].probe, true, true),
		     TL_ENTERED_LOOP);
	leave(0x8000);
	cr_assert_str_eq(marks, "+a -a ");
}

Test(shadow, a_return_site_closes_what_returned_and_what_lies_below)
{
	enter(0x8000, "a");
	enter(0x7000, "b");
	enter(0x6000, "c");
	tl_shadow_return(&s, 0x7008);
	cr_assert_str_eq(marks, "+a +b +c -cu -b ");
}

Test(shadow, frames_of_another_stack_are_set_aside_and_opened_again)
{
	enter(0x8000, "a");
	tl_shadow_add_stack(&s, 0x20000, 0x30000);
	enter(0x2f000, "x");
	leave(0x8000);
	cr_assert_str_eq(marks, "+a +x -xf -a ");
	enter(0x2e000, "y");
	leave(0x2e000);
	leave(0x2f000);
	cr_assert_str_eq(marks, "+a +x -xf -a +xs +y -y -x ");
	cr_assert_eq(calls_left, 3);
}

Test(shadow, a_hidden_frame_makes_no_mark_but_is_left)
{
	enter(0x8000, "a");
	tl_shadow_enter(&s, 0x7000, "h", false, false);
	enter(0x6000, "b");
	leave(0x6000);
	leave(0x7000);
	leave(0x8000);
	cr_assert_str_eq(marks, "+a +b -b -a ");
	cr_assert_eq(calls_left, 3);
}

Test(shadow, found_frames_are_flagged)
{
	tl_shadow_found(&s, 0x8000, "a", true);
	leave(0x8000);
	cr_assert_str_eq(marks, "+as -a ");
}

Test(shadow, close_all_leaves_nothing_open)
{
	enter(0x8000, "a");
	enter(0x7000, "b");
	tl_shadow_close_all(&s, TL_MARK_FORCED);
	cr_assert_str_eq(marks, "+a +b -bf -af ");
	cr_assert_eq(calls_left, 2);
	cr_assert_eq(s.block.n, 0);
}

static void *same(void *ctx, void *probe)
{
	(void)ctx;
	return probe;
}

Test(shadow, a_forked_child_goes_on_inside_its_parents_calls)
{
	struct tl_shadow child;

	enter(0x8000, "a");
	tl_shadow_init(&child, &ops, NULL);
	tl_shadow_inherit(&child, &s, same, NULL);
	cr_assert(tl_shadow_on(&child, 0x8000));
	tl_shadow_exit(&child, 0x8000);
	cr_assert_str_eq(marks, "+a +as -a ");
	tl_shadow_fini(&child);
}
