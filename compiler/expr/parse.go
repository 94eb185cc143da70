package expr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Limits on the input of Parse, far above any real workload, to bound the cost of malicious text.
const (
	maxTextBytes = 1 << 20
	maxDepth     = 200
	maxRank      = 16
)

// Parse parses a canonical text. Errors name the line. The result's Text equals the input.
func Parse(text string) (*Workload, error) {
	if len(text) > maxTextBytes {
		return nil, fmt.Errorf("workload: text of %d bytes is over the limit of %d", len(text), maxTextBytes)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if lines[0] != textHeader {
		return nil, fmt.Errorf("workload: line 1 is not %q", textHeader)
	}
	p := &parser{tensors: map[string]*Tensor{}}
	for k, line := range lines[1:] {
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("workload: line %d: %w", k+2, err)
		}
	}
	return p.finish(text)
}

type parser struct {
	tensors map[string]*Tensor
	args    []*Tensor
	outputs []*Tensor
	tokens  []string
	vars    map[string]*Var
}

func (p *parser) finish(text string) (*Workload, error) {
	w, err := NewWorkload(p.outputs, p.args...)
	if err != nil {
		return nil, err
	}
	if w.Text() != strings.TrimSuffix(text, "\n")+"\n" {
		return nil, fmt.Errorf("workload: text is not in canonical form")
	}
	return w, nil
}

func (p *parser) line(line string) error {
	fields := strings.SplitN(line, " ", 3)
	if len(p.outputs) > 0 {
		return fmt.Errorf("text after the outputs")
	}
	if fields[0] == "output" {
		return p.output(strings.Fields(line)[1:])
	}
	if len(fields) < 3 {
		return fmt.Errorf("%q is not a declaration", line)
	}
	if want := "t" + strconv.Itoa(len(p.tensors)); fields[1] != want {
		return fmt.Errorf("tensor %q, want %s", fields[1], want)
	}
	t, err := p.tensor(fields[0], fields[1], fields[2])
	if err != nil {
		return err
	}
	p.tensors[fields[1]] = t
	return nil
}

func (p *parser) output(names []string) error {
	for _, name := range names {
		t := p.tensors[name]
		if t == nil {
			return fmt.Errorf("output %s is not declared", name)
		}
		p.outputs = append(p.outputs, t)
	}
	return nil
}

func (p *parser) tensor(kind, name, rest string) (*Tensor, error) {
	typed, body, isStage := strings.Cut(rest, " = ")
	typed, limits, isOpen := strings.Cut(typed, " while ")
	typed, over, _ := strings.Cut(typed, " over ")
	t, err := parseType(name, typed)
	if err != nil {
		return nil, err
	}
	if kind == "input" || kind == "constant" {
		t.Role = Input
		if kind == "constant" {
			t.Role = Constant
		}
		p.args = append(p.args, t)
		return t, nil
	}
	c := slices.Index(combinerNames[:], kind)
	if c < 0 || !isStage {
		return nil, fmt.Errorf("%q is not a kind of tensor", kind)
	}
	t.Combiner = Combiner(c)
	extents, err := parseExtents(over)
	if err != nil {
		return nil, err
	}
	t.Axes, t.Reduce = newVars("i", t.Shape), newVars("r", extents)
	if isOpen {
		if err := p.limits(t, limits); err != nil {
			return nil, err
		}
	}
	return t, p.body(t, body)
}

// limits parses the limits of a tensor's axes.
func (p *parser) limits(t *Tensor, text string) error {
	for _, part := range strings.Split(text, ", ") {
		name, limit, _ := strings.Cut(part, " ")
		k := slices.IndexFunc(t.variables(), func(v *Var) bool { return v.Name == name })
		if k < 0 {
			return fmt.Errorf("limit of %q, which is not an axis", name)
		}
		v := t.variables()[k]
		if v.Limit != nil {
			return fmt.Errorf("axis %s has two limits", name)
		}
		var err error
		if v.Limit, err = p.whole(limit, nil); err != nil {
			return fmt.Errorf("limit of %s: %w", name, err)
		}
	}
	return nil
}

// parseType parses the output of typeText.
func parseType(tensor, s string) (*Tensor, error) {
	s, limit, isCount := strings.Cut(s, "<=")
	dense, strides, isPart := strings.Cut(s, "@")
	name, shape, ok := strings.Cut(dense, "[")
	d := array.ParseDType(name)
	if !ok || d == array.Invalid || !strings.HasSuffix(shape, "]") {
		return nil, fmt.Errorf("%q is not a tensor type", s)
	}
	extents, err := parseExtents(strings.TrimSuffix(shape, "]"))
	if err != nil {
		return nil, err
	}
	t := &Tensor{Name: tensor, DType: d, Shape: extents}
	if isPart {
		if t.Strides, err = parseStrides(strides); err != nil {
			return nil, err
		}
	}
	if isCount {
		points, err := parseExtents(limit)
		if err != nil || !t.setPoints(points) || d != array.Int64 || len(extents) > 0 || isPart {
			return nil, fmt.Errorf("%q is not a count", s+"<="+limit)
		}
	}
	_, err = array.CheckedBytes(d, extents)
	return t, err
}

// setPoints makes the tensor a count with one number, its maximum, or with one for each point.
func (t *Tensor) setPoints(points []int64) bool {
	if len(points) != 1 && len(points) != Points {
		return false
	}
	t.Max = points[len(points)-1]
	if len(points) > 1 {
		t.Points = points
	}
	return slices.Min(points) >= 1 && slices.Max(points) == t.Max
}

func parseStrides(s string) ([]int64, error) {
	if !strings.HasPrefix(s, "[") || !strings.HasSuffix(s, "]") {
		return nil, fmt.Errorf("%q are not strides", s)
	}
	return parseExtents(s[1 : len(s)-1])
}

func parseExtents(s string) ([]int64, error) {
	if s == "" {
		return []int64{}, nil
	}
	parts := strings.Split(s, ",")
	if len(parts) > maxRank {
		return nil, fmt.Errorf("rank %d is over the limit of %d", len(parts), maxRank)
	}
	extents := make([]int64, len(parts))
	for k, part := range parts {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n <= 0 {
			return nil, fmt.Errorf("extent %q is not a positive integer", part)
		}
		extents[k] = n
	}
	return extents, nil
}

func (p *parser) body(t *Tensor, text string) (err error) {
	vars := map[string]*Var{}
	for _, v := range t.variables() {
		vars[v.Name] = v
	}
	t.Body, err = p.whole(text, vars)
	return err
}

// whole parses a text that is one expression.
func (p *parser) whole(text string, vars map[string]*Var) (Expr, error) {
	p.vars, p.tokens = vars, tokenize(text)
	e, err := p.expr(0)
	if err == nil && len(p.tokens) > 0 {
		return nil, fmt.Errorf("%q after the body", p.tokens[0])
	}
	return e, err
}

func tokenize(text string) []string {
	for _, c := range []string{"(", ")", "[", "]"} {
		text = strings.ReplaceAll(text, c, " "+c+" ")
	}
	return strings.Fields(text)
}

func (p *parser) next() string {
	if len(p.tokens) == 0 {
		return ""
	}
	tok := p.tokens[0]
	p.tokens = p.tokens[1:]
	return tok
}

func (p *parser) expr(depth int) (Expr, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("expression is nested more than %d deep", maxDepth)
	}
	switch tok := p.next(); tok {
	case "":
		return nil, fmt.Errorf("expression ends early")
	case "(":
		return p.call(depth)
	case "[":
		return p.load(depth)
	default:
		if v := p.vars[tok]; v != nil {
			return v, nil
		}
		return parseLiteral(tok)
	}
}

func (p *parser) operands(depth int, closing string) ([]Expr, error) {
	var list []Expr
	for len(p.tokens) > 0 && p.tokens[0] != closing {
		e, err := p.expr(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	if p.next() != closing {
		return nil, fmt.Errorf("missing %q", closing)
	}
	return list, nil
}

func (p *parser) load(depth int) (Expr, error) {
	name := p.next()
	t := p.tensors[name]
	if t == nil {
		return nil, fmt.Errorf("tensor %q is not declared", name)
	}
	index, err := p.operands(depth, "]")
	if err != nil {
		return nil, err
	}
	if len(index) != len(t.Shape) {
		return nil, fmt.Errorf("%d indices into %s%v", len(index), name, t.Shape)
	}
	for _, x := range index {
		if x.DType() != array.Int64 {
			return nil, fmt.Errorf("index of %s is %v, not i64", name, x.DType())
		}
	}
	return &Load{Tensor: t, Index: index}, nil
}

func (p *parser) call(depth int) (Expr, error) {
	op := p.next()
	if op == "cast" {
		return p.cast(depth)
	}
	xs, err := p.operands(depth, ")")
	if err != nil {
		return nil, err
	}
	if op == "select" {
		if len(xs) != 3 || xs[0].DType() != array.Bool || xs[1].DType() != xs[2].DType() {
			return nil, fmt.Errorf("select does not fit its operands")
		}
		return newSelect(xs[0], xs[1], xs[2]), nil
	}
	if k := slices.Index(binaryNames[:], op); k > 0 {
		if len(xs) != 2 || xs[0].DType() != xs[1].DType() {
			return nil, fmt.Errorf("%s does not fit its operands", op)
		}
		return newBinary(BinaryOp(k), xs[0], xs[1]), nil
	}
	if k := slices.Index(unaryNames[:], op); k > 0 && len(xs) == 1 {
		return newUnary(UnaryOp(k), xs[0]), nil
	}
	return nil, fmt.Errorf("%q is not an operator of %d operands", op, len(xs))
}

func (p *parser) cast(depth int) (Expr, error) {
	name := p.next()
	d := array.ParseDType(name)
	if d == array.Invalid {
		return nil, fmt.Errorf("cast to %q, which is not a type", name)
	}
	xs, err := p.operands(depth, ")")
	if err != nil {
		return nil, err
	}
	if len(xs) != 1 {
		return nil, fmt.Errorf("cast of %d operands", len(xs))
	}
	return &Cast{Type: d, A: xs[0]}, nil
}

func parseLiteral(tok string) (Expr, error) {
	value, typ, typed := strings.Cut(tok, ":")
	d := array.Int64
	if typed {
		d = array.ParseDType(typ)
	}
	if d.IsFloat() {
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", tok)
		}
		return &Float{Value: v, Type: d}, nil
	}
	v, err := strconv.ParseInt(value, 10, 64)
	if err != nil || d == array.Invalid {
		return nil, fmt.Errorf("%q is not a variable or a number", tok)
	}
	return &Int{Value: v, Type: d}, nil
}
