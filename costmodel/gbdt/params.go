package gbdt

import (
	"fmt"
	"runtime"
)

// Params configures training.
type Params struct {
	// Trees is the number of trees to add.
	Trees int
	// Leaves is the maximum number of leaves per tree.
	Leaves int
	// LearningRate scales each tree.
	LearningRate float64
	// MinWeight is the minimum sum of second derivatives in a leaf; for the squared error, the minimum number of rows.
	MinWeight float64
	// L2 is added to the sum of second derivatives of a leaf, which shrinks its value.
	L2 float64
	// RowFraction and FeatureFraction are the shares of rows and features that each tree sees, in (0, 1].
	RowFraction, FeatureFraction float64
	// Seed determines all random draws.
	Seed uint64
	// Workers is the number of processors to use; 0 means all. It does not affect the model.
	Workers int
}

// DefaultParams returns parameters for thousands of rows with hundreds of features.
func DefaultParams() Params {
	return Params{Trees: 100, Leaves: 31, LearningRate: 0.1, MinWeight: 1, L2: 1, RowFraction: 1, FeatureFraction: 1}
}

func (p Params) check() error {
	switch {
	case p.Trees < 0:
		return fmt.Errorf("gbdt: %d trees: give 0 or more", p.Trees)
	case p.Leaves < 2:
		return fmt.Errorf("gbdt: %d leaves a tree: give 2 or more", p.Leaves)
	case !(p.LearningRate > 0):
		return fmt.Errorf("gbdt: learning rate %v: give more than 0", p.LearningRate)
	case !(p.MinWeight > 0):
		return fmt.Errorf("gbdt: least weight of a leaf %v: give more than 0", p.MinWeight)
	case !(p.L2 >= 0):
		return fmt.Errorf("gbdt: L2 regularization %v: give 0 or more", p.L2)
	case !(p.RowFraction > 0 && p.RowFraction <= 1):
		return fmt.Errorf("gbdt: share of rows %v: give more than 0 and at most 1", p.RowFraction)
	case !(p.FeatureFraction > 0 && p.FeatureFraction <= 1):
		return fmt.Errorf("gbdt: share of features %v: give more than 0 and at most 1", p.FeatureFraction)
	case p.Workers < 0:
		return fmt.Errorf("gbdt: %d workers: give 0 (all processors) or more", p.Workers)
	}
	return nil
}

func (p Params) workers() int {
	if p.Workers > 0 {
		return p.Workers
	}
	return runtime.GOMAXPROCS(0)
}
