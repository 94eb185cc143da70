package tuner_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/tuner"
)

// kernel returns a kernel that computes one workload, identified by its whole text.
func kernel(t *testing.T, w *expr.Workload, name, more string) *userkernel.Kernel {
	t.Helper()
	lines := `"` + strings.ReplaceAll(strings.TrimSuffix(w.Text(), "\n"), "\n", `","`) + `"`
	text := `{"name":"` + name + `","arch":"x86-64",` + more + `"workloads":[{"text":[` + lines +
		`]}],"knobs":[{"name":"A","values":[1,2,3]},{"name":"B","values":[4,5]}],"legal":"A != 1 && THREADS == 1","source":"x"}`
	k, err := userkernel.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func machine(t *testing.T, threads int) *target.Target {
	t.Helper()
	m, err := target.Parse("x86-64-v3", threads)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func add(t *testing.T, base *searchspace.Space, numerics schedule.Numerics, kernels ...*userkernel.Kernel) (*searchspace.Space, error) {
	t.Helper()
	a, err := tuner.NewKernelAdder(kernels, numerics)
	if err != nil {
		t.Fatal(err)
	}
	return a.Add(t.Context(), base)
}

// TestKernelJoinsTheSpaceBesideItsSchedules checks that the default is unchanged, that the kernel's first legal
// choice is the last default, and that its points can only be parsed in this space.
func TestKernelJoinsTheSpaceBesideItsSchedules(t *testing.T) {
	w, on := kerneltest.Product(t, 16, 32, 64), machine(t, 1)
	base, err := registry.Space(w, on, schedule.Default)
	if err != nil {
		t.Fatal(err)
	}
	s, err := add(t, base, schedule.Default, kernel(t, w, "mine", `"numerics":"strict",`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Default(), base.Default(); !strings.HasSuffix(s.Format(got), base.Format(want)) || s.Own(got) {
		t.Errorf("the default is %s, not %s", s.Format(got), base.Format(want))
	}
	defaults := s.Defaults()
	first := defaults[len(defaults)-1]
	if len(defaults) != len(base.Defaults())+1 || !s.Own(first) || !strings.HasSuffix(s.Format(first), " A=2 B=4") {
		t.Fatalf("the last of %d defaults is %s", len(defaults), s.Format(first))
	}
	made, err := s.Apply(first)
	if err != nil || made.Own == nil || made.Numerics() != schedule.Strict {
		t.Fatalf("%+v, %v", made, err)
	}
	again, err := schedule.Replay(w, made.Trace())
	if err != nil || schedule.Digest(again.Trace()) != schedule.Digest(made.Trace()) {
		t.Errorf("it replays as %v, %v", again, err)
	}
	if p, ok := s.Parse(s.Format(first)); !ok || p.Key() != first.Key() {
		t.Errorf("%s is read as %v, %v", s.Format(first), p, ok)
	}
	if p, ok := base.Parse(s.Format(first)); ok {
		t.Errorf("without the kernel, its point is %s", base.Format(p))
	}
	for _, p := range s.InitialOwnPoints(rand.New(rand.NewPCG(1, 2)), 8) {
		if s.Legal(p) != nil || !s.Own(p) {
			t.Errorf("%s is sent first: %v", s.Format(p), s.Legal(p))
		}
	}
}

func TestKernelsAreTriedInTheSecondProposalAtTheLatest(t *testing.T) {
	w := kerneltest.Product(t, 16, 32, 64)
	base, err := registry.Space(w, machine(t, 1), schedule.Default)
	if err != nil {
		t.Fatal(err)
	}
	s, err := add(t, base, schedule.Default, kernel(t, w, "mine", `"numerics":"strict",`))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tuner.Names() {
		search, err := tuner.NewSearch(s, nil, tuner.Options{Algorithm: name})
		if err != nil {
			t.Fatal(err)
		}
		first, second := search.Propose(1), search.Propose(8)
		if len(first) != 1 || first[0].Point.Key() != s.Default().Key() || len(second) == 0 || !s.Own(second[0].Point) {
			t.Errorf("%s proposes %v, then %v", name, first, second)
		}
	}
}

func TestUnsuitableKernelsAreNotUsed(t *testing.T) {
	w, on := kerneltest.Product(t, 16, 32, 64), machine(t, 1)
	other := kerneltest.Product(t, 16, 32, 65)
	for name, c := range map[string]struct {
		threads  int
		kernel   *userkernel.Kernel
		numerics schedule.Numerics
		why      string
	}{
		"another workload":             {1, kernel(t, other, "mine", `"numerics":"strict",`), schedule.Fast, "own kernel mine computes none of the tasks"},
		"an extension that it lacks":   {1, kernel(t, w, "mine", `"features":["avx512f"],"numerics":"strict",`), schedule.Fast, "own kernel mine needs avx512f"},
		"a level that does not permit": {1, kernel(t, w, "mine", `"numerics":"fast",`), schedule.Default, "own kernel mine needs numerics fast"},
		"no legal choice":              {2, kernel(t, w, "mine", `"numerics":"strict",`), schedule.Default, "own kernel mine has no legal choice"},
	} {
		on := on.WithThreads(c.threads)
		base, err := registry.Space(w, on, c.numerics)
		if err != nil {
			t.Fatal(err)
		}
		s, err := add(t, base, c.numerics, c.kernel)
		if err != nil || s.Owns() > 0 {
			t.Errorf("%s: %d kernels, %v", name, s.Owns(), err)
		}
		a, err := tuner.NewKernelAdder([]*userkernel.Kernel{c.kernel}, c.numerics)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Unused(t.Context(), on, []*expr.Workload{w}); len(got) != 1 || !strings.HasPrefix(got[0].Error(), c.why) {
			t.Errorf("%s: the reasons are %v, not %s", name, got, c.why)
		}
	}
	mine := kernel(t, w, "mine", `"numerics":"strict",`)
	if _, err := tuner.NewKernelAdder([]*userkernel.Kernel{mine, mine}, schedule.Default); err == nil {
		t.Error("two kernels of one name are accepted")
	}
}
