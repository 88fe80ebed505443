#!/bin/sh
# What trapline dprofpp prints, against what Devel::DProf's dprofpp printed of the same
# files: fixtures/tmon/INDEX.tsv lists them. Standard output is compared byte for byte, the
# exit status as 0 or not, and the messages where they are the same in any order.
#
#	test_dprofpp_samples.sh [BUILD]	default $BUILD

src=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-${BUILD:-.}}" && pwd)
samples=$src/fixtures/tmon
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
unset DPROFPP_OPTS TRAPLINE_OUT
LC_ALL=C
export LC_ALL

# Where we differ on purpose, and why. What we print then is in fixtures/tmon/fixed/.
fixed() {
	case $1 in
	bigvalues.*) echo "a number too wide for its column widens it" ;;
	group.f_*|group.g_*_f_*|many20.f_*) echo "-f looks at the last two functions too" ;;
	group.G_nomatch|badexit.F_G___P) echo "a group without calls is a row of zeros" ;;
	smalltimes.*|real_buffer0_uexit.F) echo "the heading has no exponents" ;;
	nested.r_s) echo "-r -s: one clock for marks, label and run" ;;
	*) return 1 ;;
	esac
}

# Over-corrected profiles have negative times: dprofpp prints `-' for them (and what is
# beside moves by one column), we print 0. Everything else must be the same.
clamped() {
	awk '
	function zero(i, text) { if ($i ~ /^-/) $i = text }
	/^Total Elapsed|^ +[A-Za-z+]+ Time =/ { zero(NF - 1, "0"); $1 = $1; print; next }
	NF == 7 && $4 ~ /^[0-9]+$/ {
		zero(1, "0.00"); zero(2, "0.000"); zero(3, "0.000"); zero(5, "0.0000"); zero(6, "0.0000")
		$1 = $1
	}
	{ print }' "$1"
}
negative() {
	grep -Eq '^ +([0-9.]+ +)*-([0-9.]* |  )|Time = +-' "$1"
}

n=0
failed=0
tab=$(printf '\t')
cd "$samples" || exit 99
{
	read -r _
	while IFS= read -r line; do
		sample=${line%%"$tab"*}
		rest=${line#*"$tab"}
		args=${rest%%"$tab"*}
		rest=${rest#*"$tab"}
		status=${rest%%"$tab"*}
		rest=${rest#*"$tab"}
		out=${rest%%"$tab"*}
		err=${rest#*"$tab"}
		n=$((n + 1))
		eval "set -- $args"
		"$build/trapline" dprofpp "$@" "$sample.tmon" >"$work/out" 2>"$work/err" </dev/null
		got=$?
		why=
		base=${out%.out}
		if reason=$(fixed "$base") && [ -f "fixed/$base.out" ]; then
			out=fixed/$base.out
			case $base in
			*nomatch|badexit*) status=0 err= ;;
			esac
		else
			reason=
		fi
		if [ -z "$reason" ] && negative "$out"; then
			reason="negative times are 0"
			clamped "$out" >"$work/a"
			clamped "$work/out" >"$work/b"
			cmp -s "$work/a" "$work/b" || why="output differs"
		else
			cmp -s "$out" "$work/out" || why="output differs"
		fi
		case $status in
		0) [ $got = 0 ] || why="status $got" ;;
		*) [ $got != 0 ] || why="status 0" ;;
		esac
		# The real one adds where in its own source it gave up.
		if [ -n "$err" ]; then
			[ "$err" = - ] && err=/dev/null
			sed 's/ at DPROFPP line.*//' "$err" | sort >"$work/want"
			sed 's/^[^ ]*:[0-9]*: //' "$work/err" | sort | cmp -s - "$work/want" ||
				why="${why:+$why, }messages differ"
		fi
		name="$sample${args:+ $args}${reason:+ ($reason)}"
		if [ -z "$why" ]; then
			echo "ok $n - dprofpp $name"
		else
			echo "not ok $n - dprofpp $name: $why"
			diff "$out" "$work/out" | head -6 | sed 's/^/# /'
			failed=$((failed + 1))
		fi
	done
} <INDEX.tsv
echo "1..$n"
[ $failed = 0 ]
