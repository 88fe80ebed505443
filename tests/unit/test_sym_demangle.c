#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "sym/demangle.h"
#include "sym/names.h"

static void check(const char *raw, bool parameters, const char *want)
{
	char *s = tl_demangle(raw, parameters);

	cr_expect_str_eq(s, want, "%s: %s, not %s", raw, s, want);
	free(s);
}

Test(demangle, a_c_name_stays_as_it_is)
{
	check("main", false, "main");
	check("main", true, "main");
	check("_Zebra", false, "_Zebra");
	check("", false, "");
}

Test(demangle, cxx_loses_parameters_unless_they_are_wanted)
{
	check("_ZN3Foo3barEiPKc", false, "Foo::bar");
	check("_ZN3Foo3barEiPKc", true, "Foo::bar(int,char_const*)");
	check("_ZNK3Foo3bazEv", true, "Foo::baz()_const");
	check("_ZNSt6vectorIiSaIiEE9push_backERKi", false,
	      "std::vector<int,std::allocator<int>>::push_back");
}

Test(demangle, the_return_type_of_a_template_is_dropped)
{
	check("_Z3fooIiEvT_", false, "foo<int>");
	check("_Z3fooIiEvT_", true, "foo<int>(int)");
}

Test(demangle, blanks_go_as_the_profile_needs_it)
{
	check("_Znwm", false, "operator_new");
	check("_Znwm", true, "operator_new(unsigned_long)");
	check("_ZN12_GLOBAL__N_11fEv", false, "(anonymous_namespace)::f");
	check("a b\tc", false, "a_b_c");
	check("a\001b\177", false, "a?b?");
	check("gr\303\266\303\237e", false, "gr\303\266\303\237e");
}

Test(demangle, a_clone_keeps_its_suffix)
{
	check("f.isra.0", false, "f.isra.0");
	check("_Z3fooi.constprop.1", false, "foo.constprop.1");
	check("_Z3fooi.constprop.1", true, "foo(int).constprop.1");
	check("_ZN3Foo3barEv.part.0.isra.0", false, "Foo::bar.part.0.isra.0");
}

Test(demangle, rust_legacy_and_v0)
{
	check("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", false,
	      "core::fmt::Write::write_fmt");
	/* Its dots begin no suffix; what stands behind the hash does. */
	check("_ZN52_$LT$alloc..string..String$u20$as$u20$fmt..Debug$GT$3fmt17h0123456789abcdefE",
	      false, "<alloc::string::String_as_fmt::Debug>::fmt");
	check("_ZN4core3ptr3foo17h0123456789abcdefE.llvm.123", false, "core::ptr::foo.llvm.123");
	check("_RNvC6_123foo3bar", false, "123foo::bar");
}

Test(demangle, d_names)
{
	check("_D8demangle4testFaZv", true, "demangle.test(char)");
	check("_D8demangle4testFaZv", false, "demangle.test");
}

Test(demangle, operators_and_lambdas)
{
	check("_ZN1AclEi", false, "A::operator()");
	check("_ZN1AclEi", true, "A::operator()(int)");
	check("_ZN1AcvT_IiEEv", false, "A::operator_int<int>");
	check("_ZZ4mainENKUliE_clEi", true, "main::{lambda(int)#1}::operator()(int)_const");
}

Test(demangle, what_only_looks_mangled_stays)
{
	check("_ZN3Foo", false, "_ZN3Foo");
	check("_Z", true, "_Z");
	check("_R", true, "_R");
	check("_D", true, "_D");
	check("_Z.isra.0", true, "_Z.isra.0");
}

static void clone(const char *name, const char *want)
{
	size_t n = tl_name_without_clone(name);

	cr_expect(n == strlen(want) && !strncmp(name, want, n), "%s: %.*s", name, (int)n, name);
}

Test(demangle, the_function_of_a_clone)
{
	clone("f.isra.0", "f");
	clone("f.part.0.isra.12", "f");
	clone("f.lto_priv.0", "f");
	clone("ns::f(int).constprop.0", "ns::f(int)");
	clone("f", "f");
	clone("f.0", "f.0");
	clone("f.x.0", "f.x.0");
	clone(".isra.0", ".isra.0");
	clone("", "");
}
