package gbdt

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func modelText(t testing.TB) (*Model, string) {
	p := DefaultParams()
	p.Trees, p.Leaves = 3, 4
	m := train(t, friedman(200, 6, 1), Squared{}, p, nil)
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	return m, b.String()
}

func TestModelIsReadBackAsWritten(t *testing.T) {
	m, text := modelText(t)
	back, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(m, back) {
		t.Errorf("%+v\ninstead of\n%+v", back, m)
	}
}

// TestBadTextsAreNamed covers malformed texts, and valid ones that this package does not support.
func TestBadTextsAreNamed(t *testing.T) {
	_, text := modelText(t)
	for _, c := range []struct{ old, new, want string }{
		{"tree\n", "", `does not begin with "tree"`},
		{"version=v3", "version=v9", `version "v9"`},
		{"num_class=1", "num_class=3", `num_class is "3"`},
		{"label_index=0", "average_output", "random forest"},
		{"objective=regression", "objective=binary sigmoid:1", `objective "binary sigmoid:1"`},
		{"objective=regression", "objective=regression sqrt", "reg_sqrt"},
		{"max_feature_idx=5", "max_feature_idx=6", "with 6 names of features"},
		{"num_leaves=4", "num_leaves=400", "num_leaves"},
		{"num_cat=0", "num_cat=1", "categorical"},
		{"is_linear=0", "is_linear=1", "linear"},
		{"decision_type=2 2 2", "decision_type=2 6 2", "zero_as_missing"},
		{"decision_type=2 2 2", "decision_type=2 2", "decision_type has 2 numbers instead of 3"},
		{"end of trees\n", "", "cut short"},
		{"leaf_value=", "leaf_value=NaN ", "leaf_value has 5 numbers"},
	} {
		bad := strings.Replace(text, c.old, c.new, 1)
		if bad == text {
			t.Errorf("%q is not in the text", c.old)
		}
		if _, err := Read(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v instead of %q", c.new, err, c.want)
		}
	}
	for end := range len(text) - 1 {
		if _, err := Read(strings.NewReader(text[:end])); err == nil {
			t.Fatalf("a text cut at byte %d of %d is read", end, len(text))
		}
	}
}

func TestMalformedTreesAreRefused(t *testing.T) {
	leaves := make([]Leaf, 3)
	for what, nodes := range map[string][]Node{
		"there is no feature 9":       {{Feature: 9, Left: 1, Right: ^0}, {Left: ^1, Right: ^2}},
		"there is no node 7":          {{Left: 7, Right: ^0}, {Left: ^1, Right: ^2}},
		"leaf 0 is reached twice":     {{Left: 1, Right: ^0}, {Left: ^0, Right: ^2}},
		"node 0 is reached twice":     {{Left: 0, Right: ^0}, {Left: ^1, Right: ^2}},
		"1 of 2 nodes are not below":  {{Left: ^0, Right: ^1}, {Left: 1, Right: ^2}},
		"3 leaves do not end 1 nodes": {{Left: ^0, Right: ^1}},
	} {
		err := (&Tree{Nodes: nodes, Leaves: leaves}).check(1)
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v instead of %q", err, what)
		}
	}
}

// FuzzRead checks that the reader and the predictor only fail with errors.
func FuzzRead(f *testing.F) {
	_, text := modelText(f)
	f.Add([]byte(text))
	f.Add([]byte(text[:len(text)/2]))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		p, err := NewPredictor(m)
		if err != nil {
			t.Fatalf("read but not usable: %v", err)
		}
		if _, err := p.Predict(make([]float32, len(m.Features))); err != nil {
			t.Fatal(err)
		}
	})
}
