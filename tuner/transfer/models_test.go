package transfer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/costmodel"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// learntTrees returns the number of trees in the model of a history of one task, whose latencies are multiples of the
// cost.
func learntTrees(t *testing.T, slower float64, from Models) int {
	t.Helper()
	m := machine(t, 1)
	task := measured(t, kerneltest.Product(t, 64, 64, 64), m, usual)
	for k := range task.Trials {
		task.Trials[k].LatencySeconds *= slower
	}
	model, err := NewHistory(m, []*Task{task}).Use(from).learnt()
	if err != nil {
		t.Fatal(err)
	}
	return model.Trees()
}

// other returns a model of one tree, which no history gives.
func other(t *testing.T) *costmodel.Model {
	t.Helper()
	m := machine(t, 1)
	samples := measured(t, kerneltest.Product(t, 32, 32, 32), m, usual).samples("x", 20)
	model, err := costmodel.Train(t.Context(), nil, samples, costmodel.Options{Trees: 1})
	if err != nil {
		t.Fatal(err)
	}
	return model
}

func kept(t *testing.T, dir string) *costmodel.Model {
	t.Helper()
	m, err := costmodel.Load(dir, machine(t, 1).Fingerprint(), registry.FeatureSets()[0])
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestModelIsKeptUntilSomethingElseIsMeasured(t *testing.T) {
	dir := t.TempDir()
	trees := learntTrees(t, 1, Models{Dir: dir})
	first := kept(t, dir)
	if first.Digest() == "" || first.Trees() != trees {
		t.Fatalf("digest %q and %d trees were kept, want those %d that were learnt", first.Digest(), first.Trees(), trees)
	}
	// A stored model with the digest of the same samples is used without training.
	if err := other(t).WithDigest(first.Digest()).Save(dir, machine(t, 1).Fingerprint()); err != nil {
		t.Fatal(err)
	}
	if got := learntTrees(t, 1, Models{Dir: dir}); got != 1 {
		t.Errorf("%d trees, want the kept one", got)
	}
	if got := learntTrees(t, 2, Models{Dir: dir}); got != trees || kept(t, dir).Digest() == first.Digest() {
		t.Errorf("%d trees after other latencies were measured, want %d and another digest", got, trees)
	}
}

func TestModelThatAnotherProgramWroteIsUsedAndLeftAlone(t *testing.T) {
	dir := t.TempDir()
	if err := other(t).Save(dir, machine(t, 1).Fingerprint()); err != nil {
		t.Fatal(err)
	}
	if got := learntTrees(t, 1, Models{Dir: dir}); got != 1 || kept(t, dir).Trees() != 1 {
		t.Errorf("%d trees are used and %d kept, want 1", got, kept(t, dir).Trees())
	}
}

func TestGivenModelIsUsedWhateverWasMeasured(t *testing.T) {
	dir := t.TempDir()
	if got := learntTrees(t, 1, Models{Given: other(t), Dir: dir}); got != 1 {
		t.Errorf("%d trees, want the given one", got)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%d files were kept, %v", len(files), err)
	}
	m := machine(t, 1)
	if model, err := NewHistory(m, nil).Use(Models{Given: other(t)}).learnt(); err != nil || model.Trees() != 1 {
		t.Errorf("without records: %d trees, %v", model.Trees(), err)
	}
}

func TestBrokenModelIsNamed(t *testing.T) {
	m, dir := machine(t, 1), t.TempDir()
	path, err := costmodel.Path(dir, m.Fingerprint(), registry.FeatureSets()[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("no model"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := NewHistory(m, nil).Use(Models{Dir: dir})
	if _, err := h.learnt(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, want the file", err)
	}
}

func TestFolderThatCannotBeWrittenCostsNoModel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "models")
	if err := os.Symlink(filepath.Join(t.TempDir(), "gone", "away"), dir); err != nil {
		t.Fatal(err)
	}
	if got := learntTrees(t, 1, Models{Dir: dir}); got == 0 {
		t.Error("nothing is learnt")
	}
}

// TestHistoryIsLearntOnTopOfAPrior also checks that the prior is used alone without measurements.
func TestHistoryIsLearntOnTopOfAPrior(t *testing.T) {
	prior := other(t)
	from := Models{Prior: func(*target.Target) (*costmodel.Model, error) { return prior, nil }}
	if got := learntTrees(t, 1, from); got != prior.Trees()+addedTrees {
		t.Errorf("%d trees with a prior of one, want %d more", got, addedTrees)
	}
	if m, err := NewHistory(machine(t, 1), nil).Use(from).learnt(); err != nil || m != prior {
		t.Errorf("without measurements the model is %v (%v), want the prior", m, err)
	}
	from.Dir = t.TempDir()
	learntTrees(t, 1, from)
	first := kept(t, from.Dir)
	prior = other(t).WithDigest("another")
	if learntTrees(t, 1, from); kept(t, from.Dir).Digest() == first.Digest() {
		t.Error("a model made from another prior is used")
	}
}
