package pass

import (
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestTableIsAnOrderItself checks that the rules contradict neither each other nor the order of the table, and that
// they name passes.
func TestTableIsAnOrderItself(t *testing.T) {
	var names []string
	for _, e := range table {
		names = append(names, e.name)
	}
	if got := Ordered(names...); len(got) != len(table) {
		t.Errorf("%d passes are ordered of %d", len(got), len(table))
	}
	for _, e := range table {
		for earlier, why := range e.after {
			if Ordered(earlier); why == "" {
				t.Errorf("%s runs after %s for no reason", e.name, earlier)
			}
		}
	}
}

func TestWrongOrdersPanic(t *testing.T) {
	for want, names := range map[string][]string{
		"pass: cse must run after lanewise: vector loops must hold one statement each": {"unroll", "cse", "separate", "lanewise"},
		"pass: barrier must run after products: sums are final after a wait":           {"threads", "barrier", "products"},
		"pass: there is no pass csa": {"lanewise", "csa"},
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("%v: got %v, want %q", names, got, want)
				}
			}()
			Ordered(names...)
		}()
	}
}

func TestOnlyOptionalPassesCanBeLeftOut(t *testing.T) {
	all := Ordered("unroll", "lanewise", "cse", "prefetch")
	rest, err := all.Without([]string{"prefetch", "cse"})
	if err != nil || len(rest) != 2 || len(all) != 4 {
		t.Errorf("%d of %d passes are left, %v", len(rest), len(all), err)
	}
	for name, want := range map[string]string{
		"lanewise": "pass lanewise cannot be left out: operators without a vector form cannot be printed",
		"barrier":  `no pass "barrier" runs for this target`,
	} {
		if _, err := all.Without([]string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestFaultyPassIsNamed has a pass use a variable that no loop binds.
func TestFaultyPassIsNamed(t *testing.T) {
	w, err := expr.Parse("tilth-workload 1\ninput t0 f32[4]\nmap t1 f32[4] = (exp [t0 i0])\noutput t1\n")
	if err != nil {
		t.Fatal(err)
	}
	faulty := append(Ordered("partition"), entry{name: "faulty", run: total(func(f *ir.Func) *ir.Func { return f.With(f.Body[0].(*ir.For).Body) })})
	var seen []string
	_, err = faulty.Lower(schedule.New(w), &Config{}, func(step string, _ *ir.Func, _ time.Duration) { seen = append(seen, step) })
	if err == nil || !strings.HasPrefix(err.Error(), "after pass faulty: ir: variable ") {
		t.Errorf("got %v", err)
	}
	if got := strings.Join(seen, " "); got != "lower partition faulty" {
		t.Errorf("saw %s", got)
	}
	defer func(tests bool) { Verify = tests }(Verify)
	Verify = false
	if _, err := faulty.Lower(schedule.New(w), &Config{}, nil); err != nil {
		t.Errorf("programs are verified unasked: %v", err)
	}
}
