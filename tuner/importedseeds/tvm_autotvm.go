package importedseeds

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/searchspace"
)

// autotvmLine is a line of an AutoTVM log. Version 0.1 has i, r and v, and version 0.2 the longer names.
type autotvmLine struct {
	Input  list    `json:"input"`
	Config *config `json:"config"`
	Result list    `json:"result"`

	I list `json:"i"`
	R list `json:"r"`
}

// config holds the values of knobs: a name, a type and a value each.
type config struct {
	Entity []list `json:"entity"`
	E      []list `json:"e"`
	// T is the kind of the template in version 0.1.
	T string `json:"t"`
}

// parseAutoTVM parses a line of an AutoTVM log.
func parseAutoTVM(line []byte) (*measured, error) {
	var l autotvmLine
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, refuse(Malformed, "%v", err)
	}
	input, c, result := l.Input, l.Config, l.Result
	if input == nil && l.I != nil {
		var task list
		if l.I.read(0, &task) {
			return nil, refuse(OtherFormat, "the auto-scheduler's: use --format ansor")
		}
		if input, result, c = l.I, l.R, new(config); !input.read(5, c) {
			return nil, refuse(Malformed, "it has no configuration")
		}
	}
	var target, template string
	var args list
	if c == nil || !input.read(0, &target) || !input.read(1, &template) || !input.read(2, &args) {
		return nil, refuse(Malformed, "it has no target, task, arguments or configuration")
	}
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	latency, err := seconds(result)
	if err != nil {
		return nil, err
	}
	k, err := c.knobs()
	if err != nil {
		return nil, err
	}
	m, err := ofTemplate(template, c.T, args, k)
	if err != nil {
		return nil, err
	}
	m.seconds = latency
	return m, nil
}

// knobs holds the values of a configuration.
type knobs struct {
	// splits holds the factors of each split, innermost last.
	splits map[string][]int64
	others map[string]json.RawMessage
}

func (c *config) knobs() (*knobs, error) {
	k := &knobs{splits: map[string][]int64{}, others: map[string]json.RawMessage{}}
	for _, e := range append(c.E, c.Entity...) {
		var name, kind string
		if !e.read(0, &name) || !e.read(1, &kind) || len(e) != 3 {
			return nil, refuse(Malformed, "a knob is not a name, type and value")
		}
		if kind != "sp" {
			k.others[name] = e[2]
			continue
		}
		var factors []int64
		if !e.read(2, &factors) || len(factors) == 0 || factors[len(factors)-1] < 1 {
			return nil, refuse(Malformed, "the split %s has no factors", name)
		}
		k.splits[name] = factors
	}
	return k, nil
}

// inner returns a factor of a split, counted from the innermost, or 0 if it is missing or left open (-1).
func (k *knobs) inner(name string, from int) int64 {
	factors := k.splits[name]
	if from >= len(factors) {
		return 0
	}
	return max(0, factors[len(factors)-1-from])
}

func (k *knobs) has(names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return len(k.splits[n]) == 0 })
}

// on reports whether a knob is true.
func (k *knobs) on(name string) bool {
	var v bool
	return json.Unmarshal(k.others[name], &v) == nil && v
}

// number returns a knob's number, or 0.
func (k *knobs) number(name string) (n int64) {
	if json.Unmarshal(k.others[name], &n) != nil {
		return 0
	}
	return n
}

// tensor returns the shape of an argument ["TENSOR", shape, type].
func tensor(args list, at int) ([]int64, error) {
	var parts list
	var word, dtype string
	var shape []int64
	if !args.read(at, &parts) || !parts.read(0, &word) || !parts.read(1, &shape) || !parts.read(2, &dtype) || word != "TENSOR" {
		return nil, refuse(Malformed, "argument %d is not a tensor of a known shape", at)
	}
	if dtype != "float32" {
		return nil, refuse(OtherType, "%s", dtype)
	}
	return shape, nil
}

// operands returns the shapes of the first two arguments.
func operands(args list) (first, second []int64, err error) {
	if first, err = tensor(args, 0); err == nil {
		second, err = tensor(args, 1)
	}
	return first, second, err
}

// pair returns an argument with a number each for rows and columns, or one for both.
func pair(args list, at int) (p [2]int64, err error) {
	var both int64
	if args.read(at, &both) {
		return [2]int64{both, both}, nil
	}
	var two []int64
	if !args.read(at, &two) || len(two) != 2 {
		return p, refuse(Malformed, "argument %d is not a pair of numbers", at)
	}
	return [2]int64{two[0], two[1]}, nil
}

// convolution holds a convolution's arguments: data, weights, strides, padding, dilation.
type convolution struct {
	// data is [n,c,h,w] and weights is [o,c,kh,kw].
	data, weights []int64
	window        Window
	// layout is the argument after those of the window; a type in some templates.
	layout string
}

func readConvolution(args list, layout string, depthwise bool) (c convolution, err error) {
	if c.data, c.weights, err = operands(args); err != nil {
		return c, err
	}
	at, err := windowArguments(args)
	if err != nil {
		return c, err
	}
	if c.window.Strides, err = pair(args, at.strides); err != nil {
		return c, err
	}
	args.read(at.name, &c.layout)
	c.window.Dilations = [2]int64{1, 1}
	if at.dilation > 0 {
		if c.window.Dilations, err = pair(args, at.dilation); err != nil {
			return c, err
		}
	}
	if err := c.order(layout, depthwise); err != nil {
		return c, err
	}
	c.window.Groups = 1
	if depthwise {
		c.window.Groups = c.data[1]
	}
	c.window.Pads, err = pads(args, at.padding)
	return c, err
}

// places holds the positions of arguments, or 0.
type places struct{ strides, padding, dilation, name int }

// windowArguments locates the arguments between the tensors and the first name: strides, padding and, in
// later versions, dilation. In early versions, the number of filters and the kernel size come first.
func windowArguments(args list) (places, error) {
	var name string
	at := 2
	for at < len(args) && !args.read(at, &name) {
		at++
	}
	switch at {
	case 4:
		return places{strides: 2, padding: 3, name: at}, nil
	case 5:
		return places{strides: 2, padding: 3, dilation: 4, name: at}, nil
	case 6:
		return places{strides: 4, padding: 5, name: at}, nil
	}
	return places{}, refuse(Malformed, "its arguments are none of a convolution")
}

// order reorders shapes to NCHW and OIHW, and merges blocked channels into one axis.
func (c *convolution) order(layout string, depthwise bool) error {
	d, w := c.data, c.weights
	switch {
	case layout == nhwc && len(d) == 4 && len(w) == 4 && !depthwise:
		c.data, c.weights = []int64{d[0], d[3], d[1], d[2]}, []int64{w[3], w[2], w[0], w[1]}
	case layout == nchw && len(d) == 4 && len(w) == 4:
	case layout == nchw && len(d) == 4 && len(w) == 5 && tvmBounded(w): // OIHWo, which weights were brought into before
		c.weights = []int64{w[0] * w[4], w[1], w[2], w[3]}
	case layout == nchw && len(d) == 5 && len(w) == 6 && tvmBounded(d) && tvmBounded(w): // NCHWc and OIHWio
		c.data, c.weights = []int64{d[0], d[1] * d[4], d[2], d[3]}, []int64{w[0] * w[5], w[1] * w[4], w[2], w[3]}
	case !tvmBounded(d) || !tvmBounded(w):
		return refuse(OutOfBounds, "%v and %v", d, w)
	default:
		return refuse(OtherLayout, "data of %v and weights of %v", d, w)
	}
	return nil
}

func tvmBounded(shape []int64) bool {
	return !slices.ContainsFunc(shape, func(e int64) bool { return e < 1 || e > seedsMaxExtent })
}

// pads parses the padding: one number, one each for rows and columns, or one per side, rows first.
func pads(args list, at int) (p [4]int64, err error) {
	var one int64
	if args.read(at, &one) {
		return [4]int64{one, one, one, one}, nil
	}
	var several []int64
	if args.read(at, &several) && len(several) == 2 {
		return [4]int64{several[0], several[1], several[0], several[1]}, nil
	}
	if len(several) == 4 {
		return [4]int64(several), nil
	}
	return p, refuse(Malformed, "argument %d is not a padding", at)
}

// measured returns a parsed line of the convolution.
func (c convolution) measured(t searchspace.Tiling) *measured {
	return &measured{
		key: fmt.Sprint("conv2d ", c.data, c.weights, c.window), tiling: t,
		make: func() ([]*Operator, error) { return one(Convolution(c.data, c.weights, c.window)) },
	}
}
