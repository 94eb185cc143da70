package op

import (
	"slices"
	"testing"
)

func TestOperatorHasOneEntry(t *testing.T) {
	seen := map[name]bool{}
	for _, d := range slices.Concat(Lowered, Operators) {
		if n := (name{d.Domain, d.Name}); seen[n] {
			t.Errorf("%s has two entries", d.Name)
		} else {
			seen[n] = true
		}
	}
	for _, f := range Forms {
		if d := Find("", f.Name); d == nil || d.Infer == nil {
			t.Errorf("%s has a form, and no expressions of its own", f.Name)
		}
	}
}

func TestEntryIsLoweredOrExpanded(t *testing.T) {
	for n, d := range defs {
		if lowered := d.Infer != nil; lowered == (d.Expand != nil && d.Expands == nil) {
			t.Errorf("%s: has a shape rule %v, is always written as others %v", n.op, lowered, !lowered)
		}
	}
}

// TestNamesOfInternalOperatorsAreNoneOfONNX: theirs begin with a capital.
func TestNamesOfInternalOperatorsAreNoneOfONNX(t *testing.T) {
	for n, d := range defs {
		if capital := n.op[0] >= 'A' && n.op[0] <= 'Z'; capital == d.Internal {
			t.Errorf("%s: internal %v", n.op, d.Internal)
		}
	}
}

func TestNoOperatorIsSupportedAndRefused(t *testing.T) {
	names := supported("")
	if !slices.IsSorted(names) || len(names) < 150 {
		t.Errorf("the operators are %v", names)
	}
	for _, name := range names {
		if _, ok := refused[name]; ok {
			t.Errorf("%s is supported and refused", name)
		}
	}
}
