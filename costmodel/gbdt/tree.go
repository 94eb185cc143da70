package gbdt

import (
	"bufio"
	"bytes"
	"fmt"
	"runtime"
	"slices"

	"github.com/dmitryikh/leaves"
)

// Tree is a binary decision tree. Node 0 is the root. A tree without nodes is a single leaf.
type Tree struct {
	Nodes  []Node
	Leaves []Leaf
}

// Node sends a row left if its feature is at most the threshold.
type Node struct {
	Feature   int
	Threshold float64
	// Left and Right are indexes of nodes, or complements of leaf indexes (^leaf).
	Left, Right int
	// Gain is the decrease of the loss by the split. The node was a leaf before.
	Gain float64
	Leaf
}

// Leaf is the end of a path.
type Leaf struct {
	// Value is the contribution of the tree to the prediction.
	Value float64
	// Weight is the sum of second derivatives of the training rows in the leaf, and Rows is their number.
	Weight float64
	Rows   int
}

// leaf returns the index of the leaf that a row reaches.
func (t *Tree) leaf(row []float32) int {
	if len(t.Nodes) == 0 {
		return 0
	}
	for at := 0; ; {
		n := &t.Nodes[at]
		if at = n.Right; float64(row[n.Feature]) <= n.Threshold {
			at = n.Left
		}
		if at < 0 {
			return ^at
		}
	}
}

// check returns an error unless every path ends at a leaf, each node and leaf is reached once, and features exist.
func (t *Tree) check(features int) error {
	if len(t.Leaves) != len(t.Nodes)+1 {
		return fmt.Errorf("%d leaves do not end %d nodes", len(t.Leaves), len(t.Nodes))
	}
	nodes, leaves := make([]bool, len(t.Nodes)), make([]bool, len(t.Leaves))
	reach := func(seen []bool, i int, what string) error {
		if i < 0 || i >= len(seen) {
			return fmt.Errorf("there is no %s %d", what, i)
		}
		if seen[i] {
			return fmt.Errorf("%s %d is reached twice", what, i)
		}
		seen[i] = true
		return nil
	}
	if len(t.Nodes) > 0 {
		nodes[0] = true
	}
	for i, n := range t.Nodes {
		if n.Feature < 0 || n.Feature >= features {
			return fmt.Errorf("node %d: there is no feature %d", i, n.Feature)
		}
		for _, child := range []int{n.Left, n.Right} {
			var err error
			if child < 0 {
				err = reach(leaves, ^child, "leaf")
			} else {
				err = reach(nodes, child, "node")
			}
			if err != nil {
				return err
			}
		}
	}
	// All children are distinct, and their number is correct. Only a cycle of nodes that the root does not
	// reach remains to be detected.
	return t.checkDepth()
}

// checkDepth walks down from the root and returns an error if a node is unreachable, which implies a cycle.
func (t *Tree) checkDepth() error {
	if len(t.Nodes) == 0 {
		return nil
	}
	met, stack := 0, []int{0}
	for len(stack) > 0 {
		n := t.Nodes[stack[len(stack)-1]]
		stack = stack[:len(stack)-1]
		met++
		for _, child := range []int{n.Left, n.Right} {
			if child >= 0 {
				stack = append(stack, child)
			}
		}
	}
	if met != len(t.Nodes) {
		return fmt.Errorf("%d of %d nodes are not below the root", len(t.Nodes)-met, len(t.Nodes))
	}
	return nil
}

// Model is an ensemble. Its prediction is the sum of its trees.
type Model struct {
	// Features names the columns of a row.
	Features []string
	// Ranges holds the minimum and maximum of each feature in training.
	Ranges [][2]float64
	// Objective is the name of the loss in LightGBM text.
	Objective string
	Trees     []Tree
	// Digest identifies the training data; empty if unknown, as for models of other programs.
	Digest string
}

// Scaled returns a copy of the model with the trees from index from on multiplied by a factor.
func (m *Model) Scaled(from int, by float64) *Model {
	scaled := *m
	scaled.Trees = slices.Clone(m.Trees)
	for k := from; k < len(scaled.Trees); k++ {
		scaled.Trees[k] = m.Trees[k].mapped(func(v float64) float64 { return v * by })
	}
	return &scaled
}

// Raised returns a copy of the model with a constant added to its predictions. A model without trees is
// returned as is.
func (m *Model) Raised(by float64) *Model {
	if len(m.Trees) == 0 {
		return m
	}
	raised := *m
	raised.Trees = slices.Clone(m.Trees)
	raised.Trees[0] = m.Trees[0].mapped(func(v float64) float64 { return v + by })
	return &raised
}

// mapped returns a copy of the tree with mapped values.
func (t Tree) mapped(value func(float64) float64) Tree {
	t.Leaves, t.Nodes = slices.Clone(t.Leaves), slices.Clone(t.Nodes)
	for k := range t.Leaves {
		t.Leaves[k].Value = value(t.Leaves[k].Value)
	}
	for k := range t.Nodes {
		t.Nodes[k].Value = value(t.Nodes[k].Value)
	}
	return t
}

// predict sums the trees for one row.
func (m *Model) predict(row []float32) float64 {
	sum := 0.0
	for i := range m.Trees {
		t := &m.Trees[i]
		sum += t.Leaves[t.leaf(row)].Value
	}
	return sum
}

// Predictor evaluates a model. It is safe for concurrent use.
type Predictor struct {
	ensemble *leaves.Ensemble // nil for a model without trees
	features int
}

// NewPredictor prepares a model for prediction.
func NewPredictor(m *Model) (*Predictor, error) {
	p := &Predictor{features: len(m.Features)}
	if len(m.Trees) == 0 {
		return p, nil
	}
	var text bytes.Buffer
	if err := m.Write(&text); err != nil {
		return nil, err
	}
	var err error
	if p.ensemble, err = leaves.LGEnsembleFromReader(bufio.NewReader(&text), false); err != nil {
		return nil, fmt.Errorf("gbdt: the model for prediction: %w", err)
	}
	return p, nil
}

// Predict returns the prediction for each row of the row-major matrix rows.
func (p *Predictor) Predict(rows []float32) ([]float64, error) {
	n := len(rows) / p.features
	if len(rows) != n*p.features {
		return nil, fmt.Errorf("gbdt: %d values are not rows of %d features", len(rows), p.features)
	}
	predictions := make([]float64, n)
	if p.ensemble == nil || n == 0 {
		return predictions, nil
	}
	values := make([]float64, len(rows))
	for i, v := range rows {
		values[i] = float64(v)
	}
	if err := p.ensemble.PredictDense(values, n, p.features, predictions, 0, runtime.GOMAXPROCS(0)); err != nil {
		return nil, fmt.Errorf("gbdt: predict: %w", err)
	}
	return predictions, nil
}
