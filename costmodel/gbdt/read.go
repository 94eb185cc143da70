package gbdt

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
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

// maxText is the maximum size of a model's text in bytes.
const maxText = 256 << 20

// Read reads a model in LightGBM text format, versions 2 to 4, written by this package or by LightGBM. It
// must predict one number (regression or ranking) from numeric features without missing values.
func Read(r io.Reader) (*Model, error) {
	text := &reader{lines: bufio.NewScanner(io.LimitReader(r, maxText))}
	text.lines.Buffer(nil, maxText)
	m, err := text.model()
	if err == nil {
		err = text.lines.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("gbdt: the model's text: line %d: %w", text.line, err)
	}
	return m, nil
}

// reader splits the text into sections of key=value lines.
type reader struct {
	lines *bufio.Scanner
	line  int
}

// section is the text between blank lines.
type section struct {
	title  string // the first line if it has no value
	values map[string]string
}

// next returns the next section. ok is false at the end.
func (r *reader) next() (s section, ok bool) {
	s.values = map[string]string{}
	for r.lines.Scan() {
		r.line++
		line := strings.TrimSpace(r.lines.Text())
		key, value, hasValue := strings.Cut(line, "=")
		switch {
		case line == "" && ok:
			return s, true
		case line == "":
		case !hasValue && !ok:
			s.title, ok = line, true
		default:
			s.values[key], ok = value, true
		}
	}
	return s, ok
}

func (r *reader) model() (*Model, error) {
	head, _ := r.next()
	if head.title != "tree" {
		return nil, fmt.Errorf("it does not begin with \"tree\": give LightGBM's text format (Booster.save_model)")
	}
	m, err := header(head)
	if err != nil {
		return nil, err
	}
	want := len(strings.Fields(head.values["tree_sizes"]))
	for {
		s, ok := r.next()
		_, isTree := s.values["Tree"]
		switch {
		case ok && isTree:
			t, err := readTree(s, len(m.Features))
			if err != nil {
				return nil, fmt.Errorf("tree %d: %w", len(m.Trees), err)
			}
			m.Trees = append(m.Trees, t)
		case len(m.Trees) != want:
			return nil, fmt.Errorf("%d trees instead of %d: the text is cut short", len(m.Trees), want)
		case s.title != "end of trees":
			return nil, fmt.Errorf("\"end of trees\" is missing: the text is cut short")
		default:
			return m, nil
		}
	}
}

func header(s section) (*Model, error) {
	switch v := s.values["version"]; v {
	case "v2", "v3", "v4":
	default:
		return nil, fmt.Errorf("version %q: give v2, v3 or v4", v)
	}
	for _, key := range []string{"num_class", "num_tree_per_iteration"} {
		if v := s.values[key]; v != "1" {
			return nil, fmt.Errorf("%s is %q: only models of one number are read", key, v)
		}
	}
	if _, ok := s.values["average_output"]; ok {
		return nil, fmt.Errorf("it is a random forest: give a model of gradient boosting")
	}
	objective := s.values["objective"]
	name, options, _ := strings.Cut(objective, " ")
	switch name {
	case "regression", "regression_l1", "huber", "fair", "quantile", "mape", "lambdarank", "rank_xendcg":
		if strings.Contains(options, "sqrt") {
			return nil, fmt.Errorf("objective %q transforms its labels: train without reg_sqrt", objective)
		}
	default:
		return nil, fmt.Errorf("objective %q: give a regression or a ranking", objective)
	}
	m := &Model{Features: strings.Fields(s.values["feature_names"]), Objective: name, Digest: s.values[digestKey]}
	if err := checkNames(m.Features); err != nil {
		return nil, err
	}
	if last, err := strconv.Atoi(s.values["max_feature_idx"]); err != nil || last+1 != len(m.Features) || last < 0 {
		return nil, fmt.Errorf("max_feature_idx is %q with %d names of features", s.values["max_feature_idx"], len(m.Features))
	}
	m.Ranges = make([][2]float64, len(m.Features))
	for i, info := range strings.Fields(s.values["feature_infos"]) {
		low, high, ok := strings.Cut(strings.Trim(info, "[]"), ":")
		a, errA := strconv.ParseFloat(low, 64)
		b, errB := strconv.ParseFloat(high, 64)
		if i < len(m.Ranges) && ok && errA == nil && errB == nil { // "none" marks a feature with a single value
			m.Ranges[i] = [2]float64{a, b}
		}
	}
	return m, nil
}

func readTree(s section, features int) (Tree, error) {
	var t Tree
	leaves, err := strconv.Atoi(s.values["num_leaves"])
	if err != nil || leaves < 1 || leaves > len(s.values["leaf_value"]) {
		return t, fmt.Errorf("num_leaves is %q", s.values["num_leaves"])
	}
	if n := s.values["num_cat"]; n != "0" {
		return t, fmt.Errorf("num_cat is %q: train without categorical features", n)
	}
	if l := s.values["is_linear"]; l != "" && l != "0" {
		return t, fmt.Errorf("its leaves are linear: train with linear_tree=false")
	}
	t.Leaves, t.Nodes = make([]Leaf, leaves), make([]Node, leaves-1)
	c := columns{s: s}
	c.leaves(t.Leaves)
	if leaves > 1 {
		c.nodes(t.Nodes)
	}
	if c.err != nil {
		return t, c.err
	}
	return t, t.check(features)
}

// columns parses lists of numbers and keeps the first error.
type columns struct {
	s   section
	err error
}

func (c *columns) leaves(leaves []Leaf) {
	n := len(leaves)
	for i, v := range c.floats("leaf_value", n) {
		leaves[i].Value = v
	}
	c.describe("leaf", n, func(i int) *Leaf { return &leaves[i] })
}

func (c *columns) nodes(nodes []Node) {
	n := len(nodes)
	features, left, right := c.ints("split_feature", n), c.ints("left_child", n), c.ints("right_child", n)
	thresholds := c.floats("threshold", n)
	if c.err != nil {
		return
	}
	for i := range nodes {
		nodes[i] = Node{Feature: features[i], Threshold: thresholds[i], Left: left[i], Right: right[i]}
	}
	for i, v := range c.optional("split_gain", n) {
		nodes[i].Gain = v
	}
	for i, v := range c.optional("internal_value", n) {
		nodes[i].Value = v
	}
	c.describe("internal", n, func(i int) *Leaf { return &nodes[i].Leaf })
	for i, v := range c.ints("decision_type", n) {
		// Bit 0 marks a category. Bits 2 and 3 encode missing values: 0 none, 1 zeros, 2 NaN (which features
		// never are).
		if missing := v >> 2; c.err == nil && (v&1 != 0 || missing == 1 || missing > 2 || v < 0) {
			c.err = fmt.Errorf("node %d has decision_type %d: train with numeric features and zero_as_missing=false", i, v)
		}
	}
}

// describe reads the training statistics of leaves, or of nodes before they were split.
func (c *columns) describe(prefix string, n int, leaf func(i int) *Leaf) {
	for i, v := range c.optional(prefix+"_weight", n) {
		leaf(i).Weight = v
	}
	for i, v := range c.optional(prefix+"_count", n) {
		leaf(i).Rows = int(v)
	}
}

func (c *columns) floats(key string, n int) []float64 {
	fields := strings.Fields(c.s.values[key])
	if len(fields) != n {
		c.fail(fmt.Errorf("%s has %d numbers instead of %d", key, len(fields), n))
		return nil
	}
	list := make([]float64, n)
	for i, f := range fields {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			c.fail(fmt.Errorf("%s: %q is not a finite number", key, f))
			return nil
		}
		list[i] = v
	}
	return list
}

// optional reads a list that is only descriptive and may be absent.
func (c *columns) optional(key string, n int) []float64 {
	if len(strings.Fields(c.s.values[key])) != n {
		return nil
	}
	return c.floats(key, n)
}

func (c *columns) ints(key string, n int) []int {
	list := make([]int, 0, n)
	for _, v := range c.floats(key, n) {
		if v != math.Trunc(v) || math.Abs(v) > math.MaxInt32 {
			c.fail(fmt.Errorf("%s: %v is not a whole number of 32 bits", key, v))
			return nil
		}
		list = append(list, int(v))
	}
	return list
}

func (c *columns) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}
