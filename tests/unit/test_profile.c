#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "model/profile.h"

static struct tl_reader *open_text(const char *text)
{
	char path[] = "/tmp/test_profile.XXXXXX";
	struct tl_reader *r = NULL;
	int fd = mkstemp(path);

	cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	cr_assert_eq(tl_reader_open(path, 0, &r), TL_OK);
	unlink(path);
	return r;
}

#define HEAD "#fOrTyTwO\n$hz=1000000000;\nPART2\n& 2 m a\n& 3 m b\n"

static void read_text(struct tl_profile *p, const char *text, struct tl_profile_options o)
{
	tl_profile_init(p, open_text(text), &o);
	cr_assert_eq(tl_profile_read(p), TL_OK, "%s", tl_error_text());
}

static void done(struct tl_profile *p)
{
	struct tl_reader *r = p->r;

	tl_profile_fini(p);
	tl_reader_free(r);
}

Test(profile, self_is_total_less_callees_in_each_clock)
{
	struct tl_profile p;
	struct tl_row *a, *b;

	read_text(&p, HEAD "+ 2\n@ 1 2 10\n+ 3\n@ 10 20 100\n- 3\n@ 100 200 1000\n- 2\n",
		  (struct tl_profile_options){0});
	a = tl_profile_find(&p, "m::a");
	b = tl_profile_find(&p, "m::b");
	cr_assert_eq(a->self.in[TL_USER], 101);
	cr_assert_eq(a->self.in[TL_SYS], 202);
	cr_assert_eq(a->self.in[TL_WALL], 1010);
	cr_assert_eq(a->total.in[TL_WALL], 1110);
	cr_assert_eq(b->self.in[TL_WALL], 100);
	cr_assert_eq(tl_span_units(&a->total, TL_CPU), 333);
	done(&p);
}

Test(profile, recursion_counts_the_outermost_activation_only)
{
	struct tl_profile p;
	struct tl_row *a;

	/* a calls b calls a */
	read_text(&p, HEAD "+ 2\n@ 0 0 1\n+ 3\n@ 0 0 10\n+ 2\n@ 0 0 100\n- 2\n- 3\n- 2\n",
		  (struct tl_profile_options){0});
	a = tl_profile_find(&p, "m::a");
	cr_assert_eq(a->calls, 2);
	cr_assert_eq(a->total.in[TL_WALL], 111);
	cr_assert_eq(a->self.in[TL_WALL], 101);
	done(&p);
}

Test(profile, synthetic_frames_are_told_from_calls)
{
	struct tl_profile p;
	struct tl_row *a;

	read_text(&p, HEAD "#! task pid=1\n#! s\n+ 2\n@ 0 0 5\n#! f\n- 2\n+ 2\n- 2\n",
		  (struct tl_profile_options){0});
	a = tl_profile_find(&p, "m::a");
	cr_assert_eq(a->calls - a->synthetic, 1);
	cr_assert_eq(a->total.in[TL_WALL], 5);
	cr_assert_eq(p.tasks, 1);
	cr_assert_eq(p.forced, 1);
	done(&p);
}

Test(profile, overhead_is_taken_out_per_mark)
{
	struct tl_profile p;
	struct tl_row *a;

	/* a mark costs 20 / (2 * 5) = 2 ticks; two of b's lie within a, and its own exit */
	read_text(&p,
		  "#fOrTyTwO\n$hz=1000000000; $over_rtime=20; $over_tests=5;\nPART2\n"
		  "& 2 m a\n& 3 m b\n+ 2\n@ 0 0 100\n+ 3\n@ 0 0 50\n- 3\n- 2\n",
		  (struct tl_profile_options){.clock = TL_WALL});
	a = tl_profile_find(&p, "m::a");
	cr_assert_eq(tl_profile_ticks(tl_reader_header(p.r), &a->total, TL_WALL), 150 - 6);
	cr_assert_eq(tl_profile_ticks_rounded(&p, &a->total), 150 - 6);
	done(&p);
}

Test(profile, time_of_the_writer_is_nobodys)
{
	struct tl_profile p;

	read_text(&p,
		  HEAD "+ 2\n@ 0 0 10\n+ & Devel::DProf::write\n@ 0 0 1000\n"
		       "- & Devel::DProf::write\n@ 0 0 5\n- 2\n",
		  (struct tl_profile_options){0});
	cr_assert_eq(tl_profile_find(&p, "m::a")->self.in[TL_WALL], 15);
	cr_assert_null(tl_profile_find(&p, "Devel::DProf::write"));
	done(&p);
}

Test(profile, only_inside_a_function)
{
	struct tl_profile p;

	read_text(&p, HEAD "+ 3\n@ 0 0 1\n- 3\n+ 2\n+ 3\n@ 0 0 10\n- 3\n- 2\n+ 3\n- 3\n",
		  (struct tl_profile_options){.inside = "m::a"});
	cr_assert_eq(tl_profile_find(&p, "m::b")->calls, 1);
	cr_assert_eq(tl_profile_find(&p, "m::b")->self.in[TL_WALL], 10);
	done(&p);
}

Test(profile, an_exit_too_many_names_its_line)
{
	struct tl_profile_options o = {0};
	struct tl_profile p;

	tl_profile_init(&p, open_text(HEAD "- 2\n"), &o);
	cr_assert_eq(tl_profile_read(&p), -EBADMSG);
	cr_assert(strstr(tl_error_text(), ":6: Garbled profile"), "%s", tl_error_text());
	done(&p);
}

Test(profile, open_calls_end_with_the_last_reading)
{
	struct tl_profile p;

	read_text(&p, HEAD "+ 2\n@ 0 0 10\n", (struct tl_profile_options){0});
	cr_assert_eq(tl_profile_find(&p, "m::a")->total.in[TL_WALL], 10);
	done(&p);
}

Test(profile, tree_merges_calls_per_path)
{
	struct tl_profile p;
	const struct tl_node *a, *b;

	read_text(&p,
		  HEAD "+ 2\n+ 3\n@ 0 0 1\n- 3\n+ 3\n@ 0 0 2\n- 3\n- 2\n"
		       "+ 2\n+ 3\n@ 0 0 4\n- 3\n- 2\n+ 3\n- 3\n",
		  (struct tl_profile_options){.tree = true});
	cr_assert_eq(p.root->kids.n, 2);
	a = p.root->kids.at[0];
	cr_assert_eq(a->calls, 2);
	cr_assert_eq(a->kids.n, 1);
	b = a->kids.at[0];
	cr_assert_eq(b->calls, 3);
	cr_assert_eq(b->total.in[TL_WALL], 7);
	done(&p);
}
