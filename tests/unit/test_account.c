#include "clock/account.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* The same cost whatever ran before. */
static struct tl_costs flat(double into_ns, double out_of_ns)
{
	struct tl_costs c = {.valid = true};

	for (int part = 0; part < TL_COST_PARTS; part++) {
		bool into = part == TL_INTO_ENTRY || part == TL_INTO_EXIT;

		for (int cpu = 0; cpu < 2; cpu++)
			tl_costs_add(&c, cpu, part, 1000, into ? into_ns : out_of_ns);
	}
	return c;
}

static struct tl_record enter(uint32_t task, uint32_t func, uint64_t ns)
{
	return (struct tl_record){.task = task,
				  .func = func,
				  .kind = TL_MARK_ENTER,
				  .cost = TL_COST_ENTRY,
				  .wall_ran_ns = ns,
				  .cpu_ran_ns = ns};
}

static struct tl_record leave(uint32_t task, uint32_t func, uint64_t ns)
{
	return (struct tl_record){.task = task,
				  .func = func,
				  .kind = TL_MARK_EXIT,
				  .cost = TL_COST_EXIT,
				  .wall_ran_ns = ns,
				  .cpu_ran_ns = ns};
}

static struct tl_times add(struct tl_account *a, struct tl_record rec)
{
	return tl_account_add(a, &rec);
}

Test(account, without_costs_nothing_is_taken_out)
{
	struct tl_account *a = tl_account_new(NULL);

	cr_assert_eq(add(a, enter(1, 1, 5000)).wall_ns, 5000);
	cr_assert_eq(add(a, leave(1, 1, 7)).wall_ns, 7);
	tl_account_free(a);
}

Test(account, the_first_segment_of_a_task_has_no_stop_on_its_left)
{
	struct tl_costs c = flat(1500, 1300);
	struct tl_account *a = tl_account_new(&c);
	struct tl_account_totals t;

	cr_assert_eq(add(a, enter(1, 1, 5000)).wall_ns, 3500);
	cr_assert_eq(add(a, leave(1, 1, 5000)).wall_ns, 2200);
	tl_account_totals(a, &t);
	cr_assert_eq((uint64_t)t.overhead_wall_ns, 1500 + 2800);
	tl_account_free(a);
}

Test(account, what_is_no_stop_costs_nothing)
{
	struct tl_costs c = flat(1500, 1300);
	struct tl_account *a = tl_account_new(&c);
	struct tl_record pause = enter(1, 0, 4000);

	pause.kind = TL_MARK_PAUSE;
	pause.cost = TL_COST_NONE;
	cr_assert_eq(add(a, pause).wall_ns, 4000);
	cr_assert_eq(add(a, enter(1, 1, 4000)).wall_ns, 2500);
	cr_assert_eq(add(a, pause).wall_ns, 2700);
	tl_account_free(a);
}

Test(account, records_of_one_stop_have_no_time_and_no_cost)
{
	struct tl_costs c = flat(1500, 1300);
	struct tl_account *a = tl_account_new(&c);
	struct tl_record same = leave(1, 2, 0);

	add(a, enter(1, 1, 1500));
	add(a, enter(1, 2, 2800));
	add(a, leave(1, 2, 2800));
	same = enter(1, 3, 0);
	same.flags = TL_REC_SAME_STOP;
	cr_assert_eq(add(a, same).wall_ns, 0);
	cr_assert_eq(add(a, leave(1, 3, 3800)).wall_ns, 1000);
	tl_account_free(a);
}

/* Segments of 2800 +- 700 around a true time of 0. */
Test(account, an_empty_function_a_million_times_is_nothing_and_never_negative)
{
	struct tl_costs c = flat(1500, 1300);
	struct tl_account *a = tl_account_new(&c);
	struct tl_account_totals t;
	uint64_t sum = 0;

	add(a, enter(1, 1, 1500));
	for (int i = 0; i < 1000000; i++) {
		int64_t noise = i % 2 ? 700 : -700;

		add(a, enter(1, 2, 2800));
		sum += add(a, leave(1, 2, 2800 + noise)).wall_ns;
	}
	cr_assert_eq(sum, 0, "%lu ns of nothing", sum);
	tl_account_totals(a, &t);
	cr_assert_eq(t.clamps, 0);
	tl_account_free(a);
}

Test(account, debts_keep_the_sum_right)
{
	struct tl_costs c = flat(1500.25, 1300.5);
	struct tl_account *a = tl_account_new(&c);
	uint64_t raw = 0, sum = 0;
	double truth;

	srand(1);
	add(a, enter(1, 1, 1600));
	for (int i = 0; i < 200000; i++) {
		uint64_t ns = 2000 + rand() % 2000;

		add(a, enter(1, 2, 9000));
		raw += ns;
		sum += add(a, leave(1, 2, ns)).wall_ns;
	}
	truth = raw - 200000 * 2800.75;
	cr_assert(sum <= truth + 2000 && sum >= truth - 2000, "%lu for %f", sum, truth);
	tl_account_free(a);
}

Test(account, debts_are_paid_by_the_same_function_on_another_task)
{
	struct tl_costs c = flat(1500, 1300);
	struct tl_account *a = tl_account_new(&c);

	add(a, enter(1, 1, 1500));
	add(a, enter(2, 1, 1500));
	cr_assert_eq(add(a, leave(1, 1, 2700)).wall_ns, 0);
	cr_assert_eq(add(a, leave(2, 1, 3000)).wall_ns, 100);
	tl_account_free(a);
}

Test(account, a_debt_nobody_pays_is_a_clamp)
{
	struct tl_costs c = flat(1500, 1300);
	struct tl_account *a = tl_account_new(&c);
	struct tl_account_totals t;

	add(a, enter(1, 1, 1500));
	add(a, leave(1, 1, 2300));
	tl_account_task_end(a, 1);
	tl_account_totals(a, &t);
	cr_assert_eq(t.clamps, 2, "wall and CPU");
	cr_assert_eq(t.clamped_ns, 1000);
	tl_account_free(a);
}

/* 6000 of 9000 raw ns are system, the stop's 2800 are, too. */
Test(account, stops_are_taken_out_of_system_time)
{
	struct tl_costs c = flat(1500, 1300);
	struct tl_account *a = tl_account_new(&c);
	struct tl_record rec = enter(1, 1, 1500);
	struct tl_times t;

	rec.user_total_ns = 1000000;
	rec.sys_total_ns = 500000;
	add(a, rec);
	rec = leave(1, 1, 9000);
	rec.user_total_ns = 1000000 + 30000;
	rec.sys_total_ns = 500000 + 60000;
	t = add(a, rec);
	cr_assert_eq(t.user_ns + t.sys_ns, 6200);
	cr_assert(t.sys_ns >= 2200 && t.sys_ns <= 3200, "%lu", t.sys_ns);
	tl_account_free(a);
}

Test(account, user_and_system_add_up_to_the_cpu_clock)
{
	struct tl_costs c = flat(1500, 1300);
	struct tl_account *a = tl_account_new(&c);
	struct tl_account_totals totals;
	uint64_t user = 0, sys = 0, raw = 0;

	srand(2);
	for (int i = 0; i < 100000; i++) {
		struct tl_record rec = i % 2 ? leave(1, 1, 4000) : enter(1, 1, 4000);
		struct tl_times t;

		rec.cpu_ran_ns = 3000 + rand() % 9000;
		raw += rec.cpu_ran_ns;
		/* Ticks: now this, now that jumps by 4 ms. */
		user += i % 1000 == 0 ? 4000000 : 0;
		sys += i % 1700 == 0 ? 4000000 : 0;
		rec.user_total_ns = user;
		rec.sys_total_ns = sys;
		t = add(a, rec);
		cr_assert_leq(t.user_ns + t.sys_ns, rec.cpu_ran_ns);
	}
	tl_account_totals(a, &totals);
	raw -= (uint64_t)totals.overhead_cpu_ns;
	cr_assert(totals.sum.user_ns + totals.sum.sys_ns <= raw + 1 &&
		  totals.sum.user_ns + totals.sum.sys_ns + 4 >= raw);
	tl_account_free(a);
}

Test(account, time_outside_any_function_has_an_account_of_its_own)
{
	struct tl_costs c = flat(1500, 1300);
	struct tl_account *a = tl_account_new(&c);

	cr_assert_eq(add(a, enter(1, 1, 1000)).wall_ns, 0);
	cr_assert_eq(add(a, leave(1, 1, 2900)).wall_ns, 100);
	cr_assert_eq(add(a, enter(1, 1, 3800)).wall_ns, 500);
	tl_account_free(a);
}
