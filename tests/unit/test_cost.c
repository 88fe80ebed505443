#include "clock/cost.h"

#include <criterion/criterion.h>
#include <math.h>

static void near(double is, double wanted, double by)
{
	cr_assert(fabs(is - wanted) <= by, "%f is not %f", is, wanted);
}

Test(cost, mean_and_spread_are_those_of_the_measurements)
{
	struct tl_costs c = {0};
	struct tl_cost_cell all;

	tl_costs_add(&c, false, TL_INTO_ENTRY, 1000, 2);
	tl_costs_add(&c, false, TL_INTO_ENTRY, 1000, 4);
	tl_costs_add(&c, false, TL_INTO_ENTRY, 1000, 9);
	near(c.wall[TL_INTO_ENTRY][0].mean_ns, 5, 1e-9);
	near(c.wall[TL_INTO_ENTRY][0].spread_ns, sqrt((9 + 1 + 16) / 2.0), 1e-9);
	cr_assert_eq(c.wall[TL_INTO_ENTRY][0].n, 3);
	cr_assert_eq(c.cpu[TL_INTO_ENTRY][0].n, 0);
	all = tl_cost_pooled(&c, false, TL_INTO_ENTRY);
	near(all.mean_ns, 5, 1e-9);
	near(all.spread_ns, sqrt(13), 1e-9);
}

Test(cost, one_bin_serves_all_times)
{
	struct tl_costs c = {0};

	tl_costs_add(&c, true, TL_OUT_OF_EXIT, 30000, 1234);
	near(tl_cost_at(&c, true, TL_OUT_OF_EXIT, 0), 1234, 1e-9);
	near(tl_cost_at(&c, true, TL_OUT_OF_EXIT, 1e9), 1234, 1e-9);
	near(tl_cost_at(&c, false, TL_OUT_OF_EXIT, 1e9), 0, 0);
}

Test(cost, between_two_measured_times_the_logarithm_decides)
{
	struct tl_costs c = {0};

	tl_costs_add(&c, false, TL_INTO_EXIT, 1000, 1700);
	tl_costs_add(&c, false, TL_INTO_EXIT, 100000, 3700);
	near(tl_cost_at(&c, false, TL_INTO_EXIT, 10000), 2700, 1e-6);
	near(tl_cost_at(&c, false, TL_INTO_EXIT, 100), 1700, 1e-9);
	near(tl_cost_at(&c, false, TL_INTO_EXIT, 1e7), 3700, 1e-9);
}

Test(cost, the_bin_is_that_of_the_time_without_the_cost)
{
	struct tl_costs c = {0};

	tl_costs_add(&c, false, TL_INTO_ENTRY, 1000, 1500);
	tl_costs_add(&c, false, TL_OUT_OF_ENTRY, 1000, 1300);
	tl_costs_add(&c, false, TL_INTO_ENTRY, 3800, 9000);
	near(tl_cost_mean(&c, false, TL_INTO_ENTRY, 3800), 1500, 1e-9);
}

Test(cost, cells_without_a_time_stand_for_the_middle_of_their_bin)
{
	struct tl_costs c = {.valid = true};

	c.wall[TL_INTO_ENTRY][2] = (struct tl_cost_cell){1000, 10, 100, 0};
	c.wall[TL_INTO_ENTRY][3] = (struct tl_cost_cell){2000, 10, 100, 0};
	near(tl_cost_at(&c, false, TL_INTO_ENTRY, 10000), 1500, 1);
}
