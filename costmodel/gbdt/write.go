package gbdt

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// numericDecision is LightGBM's decision_type for a numeric comparison without missing values. Missing values
// would go left.
const numericDecision = 2

// digestKey is the only key of the header that is unknown to LightGBM, which ignores it.
const digestKey = "trained_on"

// Write writes the model in LightGBM text format, version 3.
func (m *Model) Write(w io.Writer) error {
	trees := make([][]byte, len(m.Trees))
	sizes := make([]string, len(m.Trees))
	for i := range m.Trees {
		trees[i] = m.Trees[i].text(i)
		sizes[i] = strconv.Itoa(len(trees[i]))
	}
	b := bufio.NewWriter(w)
	infos := make([]string, len(m.Ranges))
	for i, r := range m.Ranges {
		infos[i] = "[" + number(r[0]) + ":" + number(r[1]) + "]"
	}
	fmt.Fprintf(b, "tree\nversion=v3\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=%d\nobjective=%s\n",
		len(m.Features)-1, m.Objective)
	if m.Digest != "" {
		fmt.Fprintf(b, "%s=%s\n", digestKey, m.Digest)
	}
	fmt.Fprintf(b, "feature_names=%s\nfeature_infos=%s\ntree_sizes=%s\n\n",
		strings.Join(m.Features, " "), strings.Join(infos, " "), strings.Join(sizes, " "))
	for _, t := range trees {
		if _, err := b.Write(t); err != nil {
			return err
		}
	}
	fmt.Fprint(b, "end of trees\n")
	return b.Flush()
}

// text returns the section of tree i.
func (t *Tree) text(i int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Tree=%d\nnum_leaves=%d\nnum_cat=0\n", i, len(t.Leaves))
	if len(t.Nodes) > 0 {
		list(&b, "split_feature", t.Nodes, func(n Node) string { return strconv.Itoa(n.Feature) })
		list(&b, "split_gain", t.Nodes, func(n Node) string { return number(n.Gain) })
		list(&b, "threshold", t.Nodes, func(n Node) string { return number(n.Threshold) })
		list(&b, "decision_type", t.Nodes, func(Node) string { return strconv.Itoa(numericDecision) })
		list(&b, "left_child", t.Nodes, func(n Node) string { return strconv.Itoa(n.Left) })
		list(&b, "right_child", t.Nodes, func(n Node) string { return strconv.Itoa(n.Right) })
	}
	list(&b, "leaf_value", t.Leaves, func(l Leaf) string { return number(l.Value) })
	list(&b, "leaf_weight", t.Leaves, func(l Leaf) string { return number(l.Weight) })
	list(&b, "leaf_count", t.Leaves, func(l Leaf) string { return strconv.Itoa(l.Rows) })
	if len(t.Nodes) > 0 {
		list(&b, "internal_value", t.Nodes, func(n Node) string { return number(n.Value) })
		list(&b, "internal_weight", t.Nodes, func(n Node) string { return number(n.Weight) })
		list(&b, "internal_count", t.Nodes, func(n Node) string { return strconv.Itoa(n.Rows) })
	}
	b.WriteString("is_linear=0\nshrinkage=1\n\n\n")
	return b.Bytes()
}

func list[E any](b *bytes.Buffer, name string, of []E, show func(E) string) {
	b.WriteString(name)
	for i, e := range of {
		b.WriteByte("= "[min(i, 1)])
		b.WriteString(show(e))
	}
	b.WriteByte('\n')
}

// number returns the shortest text that parses to the same number.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
