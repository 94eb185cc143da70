package userkernel

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Candidate is a kernel for a workload with a value for each knob.
type Candidate struct {
	Kernel *Kernel
	// Values holds the knob values in order.
	Values []int64
	// Extents holds the values of the names in the workload's form.
	Extents map[string]int64
}

// Fit is a kernel for a workload that matches one of its forms.
type Fit struct {
	Kernel *Kernel
	// Extents holds the values of the names in the workload's form.
	Extents map[string]int64
}

// Fit matches a workload's text against the kernel's forms; ok is false if none matches.
func (k *Kernel) Fit(text string) (f *Fit, ok bool) {
	for _, form := range k.Workloads {
		if extents, ok := form.match(text); ok {
			return &Fit{k, extents}, true
		}
	}
	return nil, false
}

// At returns the candidate with the given knob values. It returns an error if the kernel does not compute the
// workload, or if the values are illegal for every target.
func (k *Kernel) At(w *expr.Workload, values []int64) (*Candidate, error) {
	f, ok := k.Fit(w.Text())
	if !ok {
		return nil, fmt.Errorf("own kernel %s does not compute the workload", k.Name)
	}
	return f.At(values)
}

// At returns the candidate with the given knob values.
func (f *Fit) At(values []int64) (*Candidate, error) {
	k := f.Kernel
	if len(values) != len(k.Knobs) {
		return nil, fmt.Errorf("own kernel %s has %d knobs, not %d", k.Name, len(k.Knobs), len(values))
	}
	for i, v := range values {
		if !slices.Contains(k.Knobs[i].Values, v) {
			return nil, fmt.Errorf("own kernel %s: knob %s has no value %d", k.Name, k.Knobs[i].Name, v)
		}
	}
	return &Candidate{k, slices.Clone(values), f.Extents}, nil
}

// Legal returns an error if knob values, including their workspace, are illegal for the given number of threads.
func (f *Fit) Legal(values []int64, threads int) error {
	c, err := f.At(values)
	if err != nil {
		return err
	}
	if err := c.Legal(threads); err != nil {
		return err
	}
	_, err = c.WorkspaceBytes(threads)
	return err
}

// Names returns all names of the candidate's expressions with their values, for the given number of threads.
func (c *Candidate) Names(threads int) map[string]int64 {
	names := map[string]int64{Threads: int64(threads)}
	maps.Copy(names, c.Extents)
	for i, v := range c.Values {
		names[c.Kernel.Knobs[i].Name] = v
	}
	return names
}

// Legal returns an error if the candidate violates the kernel's condition for the given number of threads.
func (c *Candidate) Legal(threads int) error {
	v, err := c.Kernel.legal(c.Names(threads))
	if err != nil {
		return fmt.Errorf("own kernel %s: the condition %q: %w", c.Kernel.Name, c.Kernel.Legal, err)
	}
	if v == 0 {
		return fmt.Errorf("own kernel %s: %s breaks the condition %q", c.Kernel.Name, c.Point(), c.Kernel.Legal)
	}
	return nil
}

// maxWorkspace limits the scratch memory of a kernel.
const maxWorkspace = 1 << 32

// WorkspaceBytes returns the scratch memory of the candidate for the given number of threads.
func (c *Candidate) WorkspaceBytes(threads int) (int64, error) {
	v, err := c.Kernel.space(c.Names(threads))
	if err == nil && (v < 0 || v > maxWorkspace) {
		err = fmt.Errorf("%d bytes are not between 0 and %d", v, int64(maxWorkspace))
	}
	if err != nil {
		return 0, fmt.Errorf("own kernel %s: workspace: %w", c.Kernel.Name, err)
	}
	return v, nil
}

// On returns the scratch memory of the candidate on a target, in bytes, or an error if it does not suit the target.
func (c *Candidate) On(t *target.Target) (workspaceBytes int64, err error) {
	if err := c.Kernel.Runs(t); err != nil {
		return 0, err
	}
	if len(c.Kernel.Libraries) > 0 && !t.IsHost() {
		return 0, fmt.Errorf("%s calls %s, which is taken from the machine that compiles: compile on a machine with %s", c.Kernel.Label(), c.Kernel.Libraries[0].SOName, t.Arch())
	}
	if err := c.Legal(t.Threads()); err != nil {
		return 0, err
	}
	return c.WorkspaceBytes(t.Threads())
}

// Point returns the values as text, KNOB=value separated by blanks.
func (c *Candidate) Point() string {
	parts := make([]string, len(c.Values))
	for i, v := range c.Values {
		parts[i] = fmt.Sprintf("%s=%d", c.Kernel.Knobs[i].Name, v)
	}
	return strings.Join(parts, " ")
}

// Label returns a display name of the kernel: its name and the start of its digest.
func (k *Kernel) Label() string { return fmt.Sprintf("own kernel %s sha256:%.12s", k.Name, k.Digest()) }

// traceLine starts the line of a trace with a kernel, pointLine that with its values.
const (
	traceLine = "own-kernel "
	pointLine = "point"
)

// IsTrace reports whether the first line of a trace after its header belongs to a user kernel.
func IsTrace(line string) bool { return strings.HasPrefix(line, traceLine) }

// Origin describes the user kernel of a trace by its name and knob values; it is empty if the trace contains no user
// kernel.
func Origin(trace []byte) string {
	_, text, _ := strings.Cut(string(trace), "\n"+traceLine)
	text, point, found := strings.Cut(text, "\n"+pointLine)
	if !found {
		return ""
	}
	k, err := Parse([]byte(text))
	values := strings.Fields(point)
	if err != nil || len(values) != len(k.Knobs) {
		return ""
	}
	words := []string{"kernel=" + k.Name}
	for i, v := range values {
		words = append(words, k.Knobs[i].Name+"="+v)
	}
	return strings.Join(words, " ")
}

// Trace returns the candidate as lines of a trace.
func (c *Candidate) Trace() string {
	line := pointLine
	for _, v := range c.Values {
		line += " " + strconv.FormatInt(v, 10)
	}
	return traceLine + string(c.Kernel.text) + "\n" + line + "\n"
}

// Replay parses the output of Trace for a workload.
func Replay(w *expr.Workload, lines []string) (*Candidate, error) {
	if len(lines) != 2 {
		return nil, fmt.Errorf("an own kernel has two lines, not %d", len(lines))
	}
	text, _ := strings.CutPrefix(lines[0], traceLine)
	k, err := Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	words := strings.Split(lines[1], " ")
	if words[0] != pointLine {
		return nil, fmt.Errorf("the second line of an own kernel begins with %q", pointLine)
	}
	values := make([]int64, len(words)-1)
	for i, word := range words[1:] {
		v, err := strconv.ParseInt(word, 10, 64)
		if err != nil || strconv.FormatInt(v, 10) != word {
			return nil, fmt.Errorf("%q is not a number", word)
		}
		values[i] = v
	}
	return k.At(w, values)
}
