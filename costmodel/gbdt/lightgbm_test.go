package gbdt

import (
	"os"
	"strings"
	"testing"
)

// read reads a model in testdata.
func read(t *testing.T, name string) (string, *Model, error) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Read(strings.NewReader(string(text)))
	return string(text), m, err
}

// TestModelAsLightGBMWritesItIsRead covers parameters, importances, Python's additions after the trees, constant
// features, missing values and a single-leaf tree.
func TestModelAsLightGBMWritesItIsRead(t *testing.T) {
	_, m, err := read(t, "lightgbm.txt")
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPredictor(m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Predict([]float32{0.2, 0, 7, 0.8, 0, 7, 0.8, 0, 9})
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range []float64{-0.25 + 0.125, 0.5 + 0.125, 0.75 + 0.125} {
		if got[k] != want {
			t.Errorf("row %d: %v, want %v", k, got[k], want)
		}
	}
	if m.Digest != "" || m.Ranges[0] != [2]float64{0.015625, 0.984375} || m.Ranges[1] != [2]float64{} {
		t.Errorf("digest %q, ranges %v", m.Digest, m.Ranges)
	}
}

// TestUnsupportedLightGBMFeaturesAreNamed checks that errors name the parameter that avoids an unsupported feature.
func TestUnsupportedLightGBMFeaturesAreNamed(t *testing.T) {
	text, _, _ := read(t, "lightgbm.txt")
	for _, c := range []struct{ old, new, want string }{
		{"num_cat=0\nsplit_feature=0 2", "num_cat=1\nsplit_feature=0 2", "train without categorical features"},
		{"decision_type=2 2", "decision_type=2 1", "train with numeric features"},
		{"decision_type=2 2", "decision_type=2 6", "zero_as_missing=false"},
		{"objective=regression", "objective=multiclass num_class:3", "give a regression or a ranking"},
		{"is_linear=0", "is_linear=1", "linear_tree=false"},
		{"tree_sizes=410 178", "tree_sizes=410 178 99", "2 trees instead of 3"},
	} {
		bad := strings.Replace(text, c.old, c.new, 1)
		if bad == text {
			t.Fatalf("%q is not in the text", c.old)
		}
		if _, err := Read(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want one line with %q", c.new, err, c.want)
		}
	}
}
